/** The running jobs of a session as people are shown them: the counts of its state, and the words of the events that it names. */
import type { CoreJobStart, CoreReport } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { JobName } from "#schema/Ids.ts"
import type { CoreSummary } from "#schema/SessionsApi.ts"
import { reportOf } from "#src/shared/session/jobReport.ts"
import { type ProviderWait, waitOfJob } from "#src/shared/session/providerWait.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import { jobNameIn, openSpawns } from "./runChanges.ts"
import { costSum, msBetween, tokenSum } from "#src/shared/session/sums.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The lifecycle of a running job as people are shown it. */
type Lifecycle = "INITIALIZING" | "READY" | "BUSY"

const lifecycleOf = ({ question, state }: Pick<CoreLane, "question" | "state">): Lifecycle => {
  if (state === "CORE_CREATED" || state === "CORE_INITIALIZING") return "INITIALIZING"
  return question === undefined ? "BUSY" : "READY"
}

/** Characters of the first line of a task. */
const TASK_CHARS_MAX = 200

/** A job's own words, as far as its events have them. */
interface JobWords {
  readonly task: string | undefined
  readonly kind: Pick<CoreJobStart, "agent_type" | "pool">
  readonly report: CoreReport | undefined
  /** The newest report with its plan. */
  readonly plan: CoreReport | undefined
  readonly question: CoreReport | undefined
  readonly wait: ProviderWait | undefined
}

interface PendingJob {
  readonly job_name: JobName
  readonly requested_at: string
}

/** The words of a session's jobs in its log. */
export interface SessionWords {
  readonly jobs: ReadonlyMap<JobName, JobWords>
  readonly pending: ReadonlyArray<PendingJob>
}

const revsOfJob = ({ output, plan, question, report_rev, started_rev }: CoreLane): ReadonlyArray<number> =>
  [started_rev, output.rev, report_rev, plan?.rev ?? 0, question?.rev ?? 0].filter((rev) => rev > 0)

/** The revisions that hold the words of a state's jobs, and of those that edge asked for. */
export const revsOfWords = (state: SessionState): ReadonlyArray<number> => [
  ...[...state.cores.values()].flatMap(revsOfJob),
  ...openSpawns(state).map(({ output_rev }) => output_rev)
]

const firstLine = (task_spec: string): string => firstPart(task_spec.trim().split("\n")[0] ?? "", TASK_CHARS_MAX)

const kindOf = (start: CoreJobStart | undefined): JobWords["kind"] => ({
  ...(start?.agent_type === undefined ? {} : { agent_type: start.agent_type }),
  ...(start?.pool === undefined ? {} : { pool: start.pool })
})

/** A job that edge asked for and that has not begun: it waits until what edge writes has ended. */
const pendingOf = (state: SessionState, byRev: ReadonlyMap<number, ChoirEvent>): ReadonlyArray<PendingJob> =>
  openSpawns(state).flatMap(({ call_id, output_rev }) => {
    const output = byRev.get(output_rev)
    const call =
      output?.event_type === "ModelOutput"
        ? output.payload.tool_calls.find((each) => each.call_id === call_id)
        : undefined
    const job_name = jobNameIn(call?.input)
    return output === undefined || job_name === undefined ? [] : [{ job_name, requested_at: output.created_at }]
  })

/** The words of each job, of the events at {@link revsOfWords}. */
export const wordsOf = (state: SessionState, events: ReadonlyArray<ChoirEvent>): SessionWords => {
  const { cores } = state
  const byRev = new Map(events.map((event) => [event.rev, event]))
  const said = (rev: number | undefined) => (rev === undefined ? undefined : reportOf(byRev.get(rev)))
  const jobs = new Map(
    [...cores.values()].map((core) => {
      const { job_name, plan, question, report_rev, started_rev } = core
      const wait = waitOfJob(core, (rev) => byRev.get(rev))
      const started = byRev.get(started_rev)
      const start = started?.event_type === "CoreStarted" ? started.payload.start : undefined
      const task = start === undefined ? undefined : firstLine(start.task_spec)
      return [
        job_name,
        {
          task,
          kind: kindOf(start),
          report: said(report_rev),
          plan: said(plan?.rev),
          question: said(question?.rev),
          wait
        }
      ] as const
    })
  )
  return { jobs, pending: pendingOf(state, byRev) }
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
    ...(core.question === undefined ? {} : { question: words?.question?.text ?? "" }),
    ...(words?.wait === undefined ? {} : { provider_wait: { since: words.wait.since, cause: words.wait.cause } })
  }
}

/** A job without work yet. */
const pendingSummary = ({ job_name, requested_at }: PendingJob): CoreSummary => ({
  job_name,
  state: "CORE_PENDING",
  lifecycle: "PENDING",
  step: 0,
  started_at: requested_at,
  tool_calls: 0,
  files_read: 0,
  files_changed: 0,
  commands: 0,
  tokens: 0,
  ran_ms: 0
})

/** The jobs that run, and behind them those that edge asked for. */
export const jobSummaries = ({ cores }: SessionState, { jobs, pending }: SessionWords, now_ms: number) => [
  ...[...cores.values()].map((core) => summaryOf(core, jobs.get(core.job_name), now_ms)),
  ...pending.filter(({ job_name }) => !cores.has(job_name)).map(pendingSummary)
]
