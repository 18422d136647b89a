/** A job's work as its events count it, so that people can read of it without a model. */
import type { Schema } from "effect"
import type { EventOf, WorkDone } from "#schema/Event.ts"
import type { CoreLane, JobWork, OpenCall } from "./State.ts"
import { costSum, msBetween, tokenSum } from "./sums.ts"
import { lastChars } from "./textEnds.ts"

/** Changed files of a job that are counted; a job that changed more is said to have changed at least as many. */
export const CHANGED_FILES_MAX = 100
/** The characters of a changed path; of a longer one the end is kept. */
const CHANGED_PATH_CHARS_MAX = 256

/** The work of a job that has just begun. */
export const noWork: JobWork = {
  files_read: 0,
  changed: [],
  commands: 0,
  last_tool: "",
  earlier: { tokens: 0, cost_usd: 0, ms: 0 }
}

/** A report that holds a question to the user, or the job's plan. */
export const reportKind = (input: Schema.Json): { readonly isQuestion: boolean; readonly isPlan?: boolean } => {
  const members = typeof input === "object" && input !== null && !Array.isArray(input) ? input : {}
  const kind = (members as { readonly [key: string]: Schema.Json })["kind"]
  if (kind === "need_info") return { isQuestion: true }
  return kind === "plan" || "plan" in members ? { isQuestion: false, isPlan: true } : { isQuestion: false }
}

/** With one more result. `before` is the job as it was when the call ended. */
export const workAfter = (
  { seen, work }: Pick<CoreLane, "seen" | "work">,
  { name, stage }: Pick<OpenCall, "name" | "stage">,
  { reads = [], writes = [] }: EventOf<"ToolResultCommitted">["payload"]
): JobWork => {
  const ran = stage === "committed"
  const isRun = ran && name.replaceAll("-", ".") === "choir.exec"
  const known = new Set(work.changed)
  const written = writes.flatMap(({ after, before, path }) =>
    after === before ? [] : [lastChars(path, CHANGED_PATH_CHARS_MAX)]
  )
  const fresh = [...new Set(written)].filter((path) => !known.has(path))
  const read = new Set(reads.flatMap(({ path }) => (seen.has(path) ? [] : [path])))
  if (!isRun && fresh.length === 0 && read.size === 0) return work
  return {
    ...work,
    files_read: work.files_read + read.size,
    changed: [...work.changed, ...fresh].slice(0, CHANGED_FILES_MAX),
    commands: work.commands + (isRun ? 1 : 0)
  }
}

/** The work of a job that ended, as its next life begins with it. `stopped_at` is when it ended. */
export const workBefore = ({ spent, started_at, work }: CoreLane, stopped_at: string): JobWork => ({
  ...work,
  earlier: {
    tokens: tokenSum(work.earlier.tokens, spent.input_tokens, spent.output_tokens),
    cost_usd: costSum(work.earlier.cost_usd, spent.cost_usd),
    ms: tokenSum(work.earlier.ms, msBetween(started_at, stopped_at))
  }
})

/** Changed files that the end of a job names. */
const NAMED_FILES_MAX = 5

/** All of a job's work, for the event of its end. */
export const workDone = ({ spent, started_at, step, tool_calls, work }: CoreLane): WorkDone => {
  const { changed, commands, earlier, files_read } = work
  const cost_usd = costSum(earlier.cost_usd, spent.cost_usd)
  return {
    steps: step,
    tool_calls,
    files_read,
    files_changed: changed.length,
    ...(changed.length === 0 ? {} : { files: changed.slice(0, NAMED_FILES_MAX) }),
    commands,
    tokens: tokenSum(earlier.tokens, spent.input_tokens, spent.output_tokens),
    ...(cost_usd > 0 ? { cost_usd } : {}),
    started_at,
    ...(earlier.ms > 0 ? { earlier_ms: earlier.ms } : {})
  }
}
