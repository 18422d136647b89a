/**
 * Lines to the user on a job that takes long: its plan, and every `jobs.progress_interval_ms` what it did so far. A line is a committed notice,
 * so that no crash repeats it, and it is made of events alone. No prompt shows it.
 */
import { Effect } from "effect"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { CoreLane, Moment, SessionState } from "#src/shared/session/State.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { waitOfJob } from "#src/shared/session/providerWait.ts"
import { ageSince } from "./ageSince.ts"

/** How long a plan waits for its line: the user of a job that is done by then has its end to read. */
export const PLAN_LINE_AFTER_MS = 30_000
/** The wait of a job without a line to come: lines are switched off, or the last one was refused. */
const LINES_OFF_MS = 60_000

/** How long a provider may fail until the user of a job hears of it: most failures are over by then. */
const WAIT_LINE_AFTER_MS = 120_000

/** The parts of a job that decide when its next line is due. */
type Told = Pick<CoreLane, "plan" | "question" | "started_at" | "told">

/** A plan that no line has told of. */
const newPlan = ({ plan, told }: Told): Moment | undefined =>
  plan !== undefined && plan.rev > (told?.rev ?? 0) ? plan : undefined

/** The ages, in milliseconds, of what the next line follows. */
interface Ages {
  readonly job_ms: number
  readonly told_ms: number | undefined
  readonly plan_ms: number | undefined
}

/** The milliseconds until a line is due. Silence counts from the last line, or from the job's start. */
export const lineDue = ({ job_ms, plan_ms, told_ms = Infinity }: Ages, interval_ms: number): number => {
  const silence = interval_ms - Math.min(job_ms, told_ms)
  if (plan_ms === undefined) return silence
  return Math.min(silence, Math.max(PLAN_LINE_AFTER_MS - plan_ms, interval_ms - told_ms))
}

/** The ages of moments, each counted from when it is first asked for. */
const makeAges = Effect.fnUntraced(function* ({ started_at }: Told) {
  const job = yield* ageSince(started_at)
  const known = new Map<"plan" | "told", { readonly rev: number; readonly age: Effect.Effect<number> }>()
  const ageOf = Effect.fnUntraced(function* (what: "plan" | "told", moment: Moment | undefined) {
    if (moment === undefined) return undefined
    const before = known.get(what)
    const age = before?.rev === moment.rev ? before.age : yield* ageSince(moment.at)
    known.set(what, { rev: moment.rev, age })
    return yield* age
  })
  return Effect.fnUntraced(function* (core: Told) {
    return {
      job_ms: yield* job,
      told_ms: yield* ageOf("told", core.told),
      plan_ms: yield* ageOf("plan", newPlan(core))
    } satisfies Ages
  })
})

/**
 * Tells the user of a job for as long as it runs; never ends by itself. One that waits for the user's answer says nothing, and one that waits for
 * its provider says that once.
 */
export const tellOfJob = Effect.fnUntraced(function* ({ job_id, job_name, started_at }: CoreLane) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const settings = yield* AgentSettings
  const of = ({ cores }: SessionState) => {
    const core = cores.get(job_name)
    return core?.job_id === job_id ? core : undefined
  }
  const agesOf = yield* makeAges({ started_at, plan: undefined, question: undefined, told: undefined })
  for (;;) {
    const core = of(arbiter.state())
    if (core === undefined) return yield* Effect.never
    const interval_ms = settings.current().config.jobs.progress_interval_ms
    const changed = arbiter.until((state) => {
      const now = of(state)
      const isSame = now?.plan === core.plan && now?.told === core.told && now?.question === core.question
      return !isSame || now?.output.rev !== core.output.rev
    })
    const wait = waitOfJob(core, log.find)
    const isTold = wait !== undefined && (core.told?.rev ?? 0) > wait.rev
    const due_ms =
      wait !== undefined
        ? WAIT_LINE_AFTER_MS - (yield* yield* ageSince(wait.since))
        : interval_ms === null
          ? LINES_OFF_MS
          : lineDue(yield* agesOf(core), interval_ms)
    if (core.question !== undefined || isTold) yield* changed
    else if (due_ms > 0) yield* Effect.timeoutOption(changed, due_ms)
    else {
      yield* commitIfDue(arbiter, { type: "TellJob", job_name, job_id })
      yield* Effect.timeoutOption(changed, LINES_OFF_MS)
    }
  }
})
