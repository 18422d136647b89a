/** The running jobs of a session as people are shown them: the counts of its state, and the words of the events that it names. */
import type { CoreJobStart, CoreReport } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { JobName } from "#schema/Ids.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"
import { reported } from "#src/shared/session/reported.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import { lifecycleOf } from "#src/shared/session/lifecycle.ts"
import { costSum, msBetween, tokenSum } from "#src/shared/session/sums.ts"

/** Characters of the first line of a task. */
const TASK_CHARS_MAX = 200

/** A job's own words, as far as its events have them. */
export interface JobWords {
  readonly task: string | undefined
  readonly kind: Pick<CoreJobStart, "agent_type" | "pool">
  readonly report: CoreReport | undefined
  /** The newest report with its plan. */
  readonly plan: CoreReport | undefined
  readonly question: CoreReport | undefined
}

const revsOfJob = ({ plan, question, report_rev, started_rev }: CoreLane): ReadonlyArray<number> =>
  [started_rev, report_rev, plan?.rev ?? 0, question?.rev ?? 0].filter((rev) => rev > 0)

/** The revisions that hold the words of a state's jobs. */
export const revsOfWords = ({ cores }: SessionState): ReadonlyArray<number> => [...cores.values()].flatMap(revsOfJob)

const firstLine = (task_spec: string): string =>
  (task_spec.trim().split("\n")[0] ?? "").slice(0, TASK_CHARS_MAX).toWellFormed()

const kindOf = (start: CoreJobStart | undefined): JobWords["kind"] => ({
  ...(start?.agent_type === undefined ? {} : { agent_type: start.agent_type }),
  ...(start?.pool === undefined ? {} : { pool: start.pool })
})

/** The words of each job, of the events at {@link revsOfWords}. */
export const wordsOf = ({ cores }: SessionState, events: ReadonlyArray<ChoirEvent>): ReadonlyMap<JobName, JobWords> => {
  const byRev = new Map(events.map((event) => [event.rev, event]))
  const said = (rev: number | undefined) => (rev === undefined ? undefined : reported(byRev.get(rev)))
  return new Map(
    [...cores.values()].map(({ job_name, plan, question, report_rev, started_rev }) => {
      const started = byRev.get(started_rev)
      const start = started?.event_type === "CoreStarted" ? started.payload.start : undefined
      const task = start === undefined ? undefined : firstLine(start.task_spec)
      return [
        job_name,
        { task, kind: kindOf(start), report: said(report_rev), plan: said(plan?.rev), question: said(question?.rev) }
      ]
    })
  )
}

export const summaryOf = (core: CoreLane, words: JobWords | undefined, now_ms: number): CoreSummary => {
  const { job_name, spent, started_at, state, step, tool_calls, work } = core
  const { changed, commands, earlier, files_read, last_tool } = work
  const cost_usd = costSum(earlier.cost_usd, spent.cost_usd)
  return {
    job_name,
    state,
    lifecycle: lifecycleOf(core),
    ...words?.kind,
    step,
    started_at,
    tool_calls,
    files_read,
    files_changed: changed.length,
    commands,
    tokens: tokenSum(earlier.tokens, spent.input_tokens, spent.output_tokens),
    ran_ms: tokenSum(earlier.ms, msBetween(started_at, new Date(now_ms).toISOString())),
    ...(cost_usd > 0 ? { cost_usd } : {}),
    ...(last_tool === "" ? {} : { last_tool }),
    ...(words?.task === undefined ? {} : { task: words.task }),
    ...(words?.plan?.plan === undefined ? {} : { plan: words.plan.plan }),
    ...(words?.report === undefined ? {} : { report: words.report }),
    ...(core.question === undefined ? {} : { question: words?.question?.text ?? "" })
  }
}
