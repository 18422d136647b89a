/** A job in words for people, made of committed events: a line on its work, how it ended, and what it asks. */
import type { CoreReport } from "#schema/Core.ts"
import type { CoreOutcome, EventOf, WorkDone } from "#schema/Event.ts"
import type { JobName } from "#schema/Ids.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"
import { plural } from "#src/shared/text/counts.ts"
import { fileNameText } from "#src/shared/text/foreignText.ts"
import { localSecond } from "#src/shared/text/localTime.ts"
import { CHANGED_FILES_MAX } from "./jobWork.ts"
import { reportText } from "./jobReport.ts"
import type { ProviderWait } from "./providerWait.ts"
import type { CoreLane } from "./State.ts"
import { lastPart, shortened } from "#src/shared/text/placeToCut.ts"

/** Characters of a plan in a line on a job. */
const PLAN_CHARS_MAX = 240
/** Characters of a job's newest report in a list. */
const REPORT_CHARS_MAX = 300
/** Characters of a job's own words, and of a file's name, of which the end tells most. */
const PHASE_CHARS_MAX = 80
const FILE_CHARS_MAX = 60

/** A model's or a file's text as a part of one line. */
const inLine = (text: string): string => text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim()

/** A file's name is whatever its maker chose, and people read the line as Choir's. */
const fileName = (path: string): string => {
  const name = fileNameText(path)
  return name.length <= FILE_CHARS_MAX ? name : `…${lastPart(name, FILE_CHARS_MAX - 1)}`
}

/** A span of time as people say it. */
const timeText = (ms: number): string => {
  const seconds = Math.max(1, Math.round(ms / 1000))
  return seconds < 60 ? `${seconds} s` : plural(Math.round(seconds / 60), "minute")
}

const costText = (cost_usd: number): string => (cost_usd < 0.01 ? "under 0.01 USD" : `${cost_usd.toFixed(2)} USD`)

const stepsDone = ({ plan }: Pick<CoreReport, "plan">): string | undefined =>
  plan === undefined ? undefined : `${plan.filter(({ state }) => state === "done").length} of ${plan.length} steps done`

const planText = ({ plan, text }: CoreReport): string => {
  if (plan === undefined || plan.length === 0) return inLine(text)
  const steps = plan.filter(({ state }) => state !== "dropped").map(({ step }) => inLine(step))
  return `plan of ${plural(steps.length, "step")}: ${steps.join("; ")}`
}

/** A job's work in counts. */
type Counts = Pick<CoreSummary, "commands" | "files_changed" | "files_read" | "step">

const countsText = ({ commands, files_changed, files_read, step }: Counts): string => {
  const parts = [
    ...(files_read === 0 ? [] : [`${plural(files_read, "file")} read`]),
    ...(files_changed === 0 ? [] : [`${files_changed}${files_changed < CHANGED_FILES_MAX ? "" : " or more"} changed`]),
    ...(commands === 0 ? [] : [`${plural(commands, "command")} run`])
  ]
  return parts.length === 0 ? `at work, ${plural(step, "step")}` : parts.join(", ")
}

/** The beginning of each line on a job. */
const lineBegin = (job_name: JobName): string => `${job_name}: `

/** The line on a plan that the user has not heard of. */
export const planLine = ({ job_name }: Pick<CoreLane, "job_name">, report: CoreReport): string =>
  `${lineBegin(job_name)}${shortened(planText(report), PLAN_CHARS_MAX)}`

/** The line on a job that was silent for a while. `report` is its newest, `plan` the newest with its plan. */
export const progressLine = (
  core: Pick<CoreLane, "job_name" | "step" | "work">,
  report: CoreReport | undefined,
  plan: CoreReport | undefined
): string => {
  const { changed, commands, files_read } = core.work
  const counts = { step: core.step, files_read, files_changed: changed.length, commands }
  const far = plan === undefined ? undefined : stepsDone(plan)
  const phase = report?.phase === undefined ? undefined : shortened(inLine(report.phase), PHASE_CHARS_MAX)
  return `${lineBegin(core.job_name)}${[countsText(counts), far, phase].filter((part) => part !== undefined).join("; ")}`
}

/** Characters of a provider's words in a line on a job. */
const CAUSE_CHARS_MAX = 240

/** That a job waits for its provider, and since when by the clock of this zone, or of the home's. */
export const waitText = ({ since }: Pick<ProviderWait, "since">, zone: string | undefined): string =>
  `waits for the provider since ${localSecond(since, zone).slice(0, MINUTE_CHARS)}`
const MINUTE_CHARS = "03:10".length

/** The line on a job that waits for its provider. */
export const waitLine = ({ job_name }: Pick<CoreLane, "job_name">, wait: ProviderWait): string =>
  `${lineBegin(job_name)}${waitText(wait, undefined)} (${shortened(inLine(wait.cause), CAUSE_CHARS_MAX)}). It continues by itself once there is an answer; /cancel ${job_name} ends it.`

const ENDED: Readonly<Record<CoreOutcome, string>> = {
  completed: "completed in",
  error: "ended with an error after",
  cancelled: "was cancelled after",
  budget: "ended at a limit after",
  stuck: "got stuck after"
}

/** Of the files, only those that its file tools changed are known: its commands may have changed any. */
const filesText = ({ commands, files = [], files_changed }: WorkDone): ReadonlyArray<string> => {
  if (files_changed === 0) return commands === 0 ? ["no files changed"] : []
  const isAll = files_changed < CHANGED_FILES_MAX && commands === 0
  const count = `${isAll ? "" : "at least "}${plural(files_changed, "file")} changed`
  const names = [...files.map(fileName), ...(files_changed > files.length ? ["…"] : [])]
  return [files.length === 0 ? count : `${count} (${names.join(", ")})`]
}

/** The name of the workspace among the branches that a job's branch is compared with. */
export const WORKSPACE = "the workspace"

/** The work that a job left on its branch, and what does not fit together with it. */
const treeText = (tree: EventOf<"CoreStopped">["payload"]["tree"]): string => {
  if (tree === undefined) return ""
  const { branch, commit, commits, conflicts, uncommitted } = tree
  const kept = uncommitted === 0 ? "" : `, and ${plural(uncommitted, "uncommitted file")} in its worktree, which stays`
  const clashes = conflicts.map(
    (each) =>
      ` It conflicts with ${each.with === WORKSPACE ? WORKSPACE : fileName(each.with)} in ${each.paths.map(fileName).join(", ")}.`
  )
  return ` It left ${plural(commits, "commit")} on the branch ${branch} (${commit.slice(0, COMMIT_SHOWN_CHARS)})${kept}.${clashes.join("")}`
}
/** Characters of a commit's name as people read it. */
const COMMIT_SHOWN_CHARS = 10

/** The job in which a person or a schedule runs a skill. */
const RUN = /^run-/u

/** How a job ended and what it did; nothing where its event does not say. */
export const endFacts = ({ created_at, payload }: EventOf<"CoreStopped">): string | undefined => {
  const { job_name, orphan, outcome, tree, work } = payload
  if (work === undefined) return undefined
  const ms = (work.earlier_ms ?? 0) + Date.parse(created_at) - Date.parse(work.started_at)
  const cost = work.cost_usd === undefined ? [] : [costText(work.cost_usd)]
  // The result of a skill is above this line, which counts only what a run did besides.
  if (
    outcome === "completed" &&
    RUN.test(job_name) &&
    work.files_changed === 0 &&
    work.commands === 0 &&
    orphan !== true
  )
    return `${job_name} ${ENDED.completed} ${[timeText(ms), ...cost].join(", ")}.${treeText(tree)}`
  const parts = [
    ...filesText(work),
    ...(work.commands === 0 ? [] : [plural(work.commands, "command")]),
    plural(work.steps, "step"),
    plural(work.tool_calls, "tool call"),
    plural(work.tokens, "token"),
    ...cost
  ]
  const account = orphan === true ? " It gave no account of its work (no writeback): check what it did." : ""
  return `${job_name} ${ENDED[outcome]} ${timeText(ms)}: ${parts.join(", ")}.${treeText(tree)}${account}`
}

/** The plan stands by itself. */
const withoutPlan = (report: CoreReport): CoreReport => {
  const { plan: _, ...kept } = report
  return kept
}

const MARKS = { open: "[ ]", doing: "[>]", done: "[x]", dropped: "[-]" } as const

/** `CORE_WAITING_TOOL` as a person reads it. */
const stateWords = (state: string): string =>
  state
    .replace(/^[A-Z]+_/u, "")
    .toLowerCase()
    .replaceAll("_", " ")

/** A running job in full, a line for each matter; all but the first are indented. Its times are by the clock of this zone, else of the home's. */
export const jobLines = (job: CoreSummary, zone: string | undefined): ReadonlyArray<string> => {
  const { agent_type, cost_usd, job_name, last_tool, plan, pool, question, ran_ms, report, state, step, task, tokens } =
    job
  const { provider_wait: wait } = job
  const doing =
    question !== undefined ? "waiting for your answer" : wait === undefined ? stateWords(state) : waitText(wait, zone)
  const kinds = [agent_type, pool].filter((part) => part !== undefined)
  const said = report === undefined || report.kind === "need_info" ? undefined : withoutPlan(report)
  return [
    `${job_name}: ${doing}, step ${step}, ${timeText(ran_ms)}`,
    ...(kinds.length === 0 ? [] : [`  ${kinds.join(", ")}`]),
    ...(task === undefined ? [] : [`  task: ${inLine(task)}`]),
    ...(plan === undefined ? [] : [`  plan: ${stepsDone({ plan })}`]),
    ...(plan ?? []).map((each) => `    ${MARKS[each.state]} ${inLine(each.step)}`),
    ...(said === undefined ? [] : [`  says: ${shortened(inLine(reportText(said)), REPORT_CHARS_MAX)}`]),
    ...(question === undefined ? [] : [`  asks: ${inLine(question)} (/answer ${job_name} …)`]),
    ...(wait === undefined ? [] : [`  failed: ${shortened(inLine(wait.cause), CAUSE_CHARS_MAX)}`]),
    `  ${[
      countsText(job),
      ...(last_tool === undefined ? [] : [`last ${last_tool}`]),
      plural(tokens, "token"),
      ...(cost_usd === undefined ? [] : [costText(cost_usd)])
    ].join(", ")}`
  ]
}

/** The words below a question: the job that asks, and how a person answers it at once. */
export const askFacts = (job_name: JobName): string => `${job_name} waits for your answer: /answer ${job_name} …`

/** The job that a message of the bot's asks for, by the last of its lines. */
export const askedJob = (text: string): string | undefined =>
  /(?:^|\n)([a-z][a-z0-9-]*) waits for your answer: \/answer \1 …$/u.exec(text.trimEnd())?.[1]
