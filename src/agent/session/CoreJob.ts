/** A core job: one task, many steps, one result. Like edge, it knows what to do next from the state alone. */
import { Effect, Result, Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { JobName } from "#schema/Ids.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { isRunning } from "#src/shared/session/lanes.ts"
import { mostRepeated } from "#src/shared/session/repetitions.ts"
import { owesWriteback } from "#src/shared/session/writtenBack.ts"
import type { ActiveSkill, CoreLane, OpenCall, SessionState } from "#src/shared/session/State.ts"
import { Arbiter, commitEnd, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { callLimit } from "#src/agent/arbiter/decideCalls.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { cutCalls, finalBefore, finalWords } from "#src/agent/arbiter/finalWords.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { ageSince } from "./ageSince.ts"
import { leftOnBranch } from "./jobWorktree.ts"
import { makeLanePrompts } from "./LanePrompts.ts"
import { makeScripts } from "./scripts.ts"
import { makeJobWaits, pauseBefore, PROVIDER_WAIT_MS_MAX, timeOff } from "./jobWaits.ts"
import { waitOf } from "#src/shared/session/providerWait.ts"
import type { Prompt } from "#src/agent/model/prompt/Prompt.ts"
import { inlineResult, TOOL_RESULT_BYTES_MAX } from "#src/agent/model/prompt/inlineResult.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Identical calls, refused ones included, after which the lane is stuck and ends its turn or job (E11, R25). */
export const REPETITIONS_STUCK_MIN = 8
/** A core job's summary, shown to edge and the user. */
export const CORE_SUMMARY_CHARS_MAX = 4000
/** How long a job waits for the answer to what it asked the user; then it continues without (E12). */
export const QUESTION_WAIT_MS_MAX = 600_000

type Stop = Omit<Extract<Command, { type: "StopCore" }>, "type" | "job_name">

export type CoreStep =
  | { readonly type: "run" }
  | { readonly type: "ask"; readonly correction: string | undefined }
  /** The provider failed, and may be back. */
  | { readonly type: "retry" }
  | { readonly type: "stop"; readonly stop: Stop }
  /** The user was asked something; milliseconds to wait for the answer. */
  | { readonly type: "await"; readonly wait_ms: number }

/** A job's last output and its start. */
export interface CoreRecord {
  readonly output: EventOf<"ModelOutput"> | undefined
  /** The final output before it, which it corrects or continues. */
  readonly before: EventOf<"ModelOutput">["payload"] | undefined
  readonly started: EventOf<"CoreStarted">
  /** How the newest skill of the job ended. */
  readonly skillEnd: EventOf<"SkillTransitionCommitted"> | undefined
}

/** How old a job is without its waits for a provider and the time in which no agent ran, the one that is open, and the question that it waits with; 0 without one. */
interface Ages {
  readonly job_ms: number
  readonly provider_ms: number
  readonly question_ms: number
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** A text without the fence that models put around their JSON. */
const unfenced = (text: string): string => {
  const inner = text.trim().replace(/^```(?:json)?/u, "")
  return inner.endsWith("```") ? inner.slice(0, -"```".length) : inner
}

/** A result is cut like a tool's; all of it stands in the output that it came from. */
const stop = (outcome: Stop["outcome"], summary: string, result?: Stop["result"]): CoreStep => ({
  type: "stop",
  stop: {
    outcome,
    summary: firstPart(summary, CORE_SUMMARY_CHARS_MAX),
    ...(result === undefined ? {} : { result: inlineResult(result, TOOL_RESULT_BYTES_MAX) })
  }
})

/** The job's limit of tokens that is reached, over all its lives. */
const tokenLimit = ({ budgets: { max_tokens }, spent, work }: CoreLane): string | undefined =>
  max_tokens !== undefined && work.earlier.tokens + spent.input_tokens + spent.output_tokens >= max_tokens
    ? `the job's limit of ${max_tokens} tokens (token_budget of its profile) is reached`
    : undefined

const timeLimit = ({ budgets }: CoreLane, { job_ms }: Ages): string | undefined =>
  job_ms >= budgets.wall_time_ms
    ? `the job's limit of ${Math.round(budgets.wall_time_ms / 1000)} s is reached`
    : undefined

/** The job's limit that is reached before another model call, in words. */
const spentLimit = (core: CoreLane, ages: Ages): string | undefined =>
  core.step >= core.budgets.max_steps
    ? `the job's limit of ${core.budgets.max_steps} steps is reached`
    : (timeLimit(core, ages) ?? tokenLimit(core))

/** A final text is the result; with an output schema it must fit it, and one correction is asked for. */
const finish = (text: string, isCorrection: boolean, { started }: CoreRecord): CoreStep => {
  const { output_schema } = started.payload.start
  if (output_schema === undefined) return stop("completed", text, text)
  const parsed = decodeJson(unfenced(text))
  const problem = Result.isFailure(parsed) ? "the result is not JSON" : valueProblem(output_schema, parsed.success)
  if (problem === undefined && Result.isSuccess(parsed)) return stop("completed", text, parsed.success)
  if (isCorrection) return stop("error", `the job ended without the result that was asked for: ${problem}`)
  const correction = `The result does not fit what was asked for: ${problem}. Answer again with the corrected JSON and nothing else.`
  return { type: "ask", correction }
}

/** The end of a job by its model's words, or the correction of words that are missing or were cut off. */
const ended = ({ output: { isCorrection } }: CoreLane, record: CoreRecord): CoreStep => {
  const { before, output } = record
  if (output === undefined) return { type: "ask", correction: undefined }
  const words = finalWords(output.payload, isCorrection ? before : undefined)
  switch (words.type) {
    case "correct":
      return isCorrection
        ? stop("error", "the model gave no usable result")
        : { type: "ask", correction: words.correction }
    case "broken":
      return stop("error", words.text === "" ? words.problem : `${words.problem}: ${words.text}`, words.text)
    case "whole":
      return finish(words.text, isCorrection, record)
  }
}

/** A job that was started with a skill ends with it: nothing is left of what it was to do, nor of what kept it in bounds. */
const skillFinish = ({ payload }: EventOf<"SkillTransitionCommitted">): CoreStep => {
  const { ended, on, output, reason, skill } = payload
  if (ended === "completed")
    return stop("completed", output === undefined ? `the skill ${skill} is done` : JSON.stringify(output), output)
  const why = reason ?? `by ${on}`
  return ended === "cancelled"
    ? stop("cancelled", `the skill ${skill} was cancelled: ${why}`)
    : stop("error", `the skill ${skill} failed: ${why}`)
}

/** The model is asked again, within the job's limits: the call that failed was one of its steps. */
const retry = (core: CoreLane, ages: Ages): CoreStep => {
  const limit = spentLimit(core, ages)
  return limit === undefined ? { type: "retry" } : stop("budget", limit)
}

/** Edge may resume it while time is left. */
const modelFailed = ({ budgets }: CoreLane, problem: string, { job_ms }: Ages): CoreStep => {
  const left_ms = Math.max(0, Math.floor(budgets.wall_time_ms - job_ms))
  const next = stop("error", problem)
  return next.type === "stop" && left_ms > 0 ? { ...next, stop: { ...next.stop, resumable: { left_ms } } } : next
}

/** The correction for words within a skill, which do not end it. */
const unfinished = ({ name, state }: ActiveSkill): string =>
  `The skill ${name} has not ended: do its step ${state} and leave it with choir-skill-transition. Text alone does not end it.`

/** Whether only its job's limit can have kept a call from being requested, once the calls beside it have ended. */
const isProposed = ({ stage }: OpenCall): boolean => stage === "proposed"

const OWED =
  "Before you end, give the account of your work with choir-core-writeback: status, progress, summary, tests_run and blockers. Then answer again."

/** Asks a job that owes an account of its work for it, once, together with what else is to be corrected. */
const withAccount = (next: CoreStep, core: CoreLane, { started }: CoreRecord, isAsked: boolean): CoreStep => {
  if (isAsked || core.writeback_rev > 0 || !owesWriteback(started)) return next
  if (next.type === "stop") return next.stop.outcome === "completed" ? { type: "ask", correction: OWED } : next
  return next.type === "ask" && next.correction !== undefined
    ? { type: "ask", correction: `${next.correction} ${OWED}` }
    : next
}

const coreStep = (core: CoreLane, record: CoreRecord, ages: Ages): CoreStep => {
  if (core.cancelled !== undefined) return stop("cancelled", core.cancelled)
  if (core.state === "CORE_WAITING_TOOL") {
    // Nothing runs past the job's time, nor is what the time cut off run again.
    const limit = timeLimit(core, ages) ?? (core.calls.every(isProposed) ? callLimit(core) : undefined)
    return limit === undefined ? { type: "run" } : stop("budget", limit)
  }
  const { output, skillEnd, started } = record
  if (started.payload.start.skill !== undefined && skillEnd !== undefined)
    return skillStep(skillEnd, core, record, ages)
  if (output?.payload.error !== undefined)
    return waitOf(output) !== undefined && ages.provider_ms < PROVIDER_WAIT_MS_MAX
      ? retry(core, ages)
      : modelFailed(core, output.payload.error.message, ages)
  if (mostRepeated(core.repetitions) >= REPETITIONS_STUCK_MIN)
    return stop("stuck", cutCalls(output?.payload) ?? "the job kept repeating the same step")
  const { isFinal, isSuperseded, rev } = core.output
  const isHeard = isFinal && !isSuperseded && core.injection_rev < rev
  const isResult = isHeard && core.skill === undefined
  const next: CoreStep = isResult
    ? withAccount(ended(core, record), core, record, core.output.isCorrection)
    : { type: "ask", correction: isHeard && core.skill !== undefined ? unfinished(core.skill) : undefined }
  if (next.type === "stop") return next
  const wait_ms = core.question === undefined ? 0 : QUESTION_WAIT_MS_MAX - ages.question_ms
  if (wait_ms > 0 && !isResult && timeLimit(core, ages) === undefined) return { type: "await", wait_ms }
  const limit = spentLimit(core, ages)
  return limit === undefined ? next : stop("budget", limit)
}

/** The end of a job with its skill. One that owes an account of its work is asked for it after the skill, once. */
const skillStep = (
  skillEnd: EventOf<"SkillTransitionCommitted">,
  core: CoreLane,
  record: CoreRecord,
  ages: Ages
): CoreStep => {
  const { output } = record
  const isAsked = core.output.rev > skillEnd.rev && (core.output.isFinal || output?.payload.error !== undefined)
  const next = withAccount(skillFinish(skillEnd), core, record, isAsked)
  return next.type === "ask" && spentLimit(core, ages) !== undefined ? skillFinish(skillEnd) : next
}

/** Whether there is a reason to continue: the answer, a cancel, or the end of the job. */
const isAnswered =
  ({ job_id, job_name }: CoreLane) =>
  (state: SessionState): boolean => {
    const core = state.cores.get(job_name)
    return core?.job_id !== job_id || core.question === undefined || core.cancelled !== undefined
  }

/** The ages of a job that this epoch runs. A question's counts from when its job is first seen with it. */
const makeAges = Effect.fnUntraced(function* (first: CoreLane, find: EventLog["Service"]["find"], off_ms: number) {
  const job = yield* ageSince(first.started_at)
  const waits = makeJobWaits(first, find, off_ms)
  let asked: { readonly rev: number; readonly age: Effect.Effect<number> } | undefined
  return Effect.fnUntraced(function* (core: CoreLane) {
    const { question } = core
    if (question !== undefined && asked?.rev !== question.rev)
      asked = { rev: question.rev, age: yield* ageSince(question.asked_at) }
    const question_ms = question === undefined || asked === undefined ? 0 : yield* asked.age
    const { open_ms = 0, total_ms } = yield* waits(core)
    return { job_ms: (yield* job) - total_ms, provider_ms: open_ms, question_ms } satisfies Ages
  })
})

/** A prompt whose output records the time off before it. */
const withTimeOff = (prompt: Prompt | undefined, off_ms: number): Prompt | undefined =>
  prompt === undefined || off_ms === 0 ? prompt : { ...prompt, prompted: { ...prompt.prompted, off_ms } }

/** Runs a job to its end and commits that end. */
export const runCore = Effect.fn("CoreJob.run")(function* (job_name: JobName) {
  const arbiter = yield* Arbiter
  const calls = yield* ModelCalls
  const compactor = yield* Compactor
  const log = yield* EventLog
  const prompts = yield* makeLanePrompts
  const runner = yield* ToolRunner
  const advanceScript = yield* makeScripts

  const record = ({ lane, output, skill_end_rev, started_rev }: CoreLane): CoreRecord => ({
    started: log.get(started_rev) as EventOf<"CoreStarted">,
    skillEnd: skill_end_rev === 0 ? undefined : (log.get(skill_end_rev) as EventOf<"SkillTransitionCommitted">),
    output: output.rev === 0 ? undefined : (log.get(output.rev) as EventOf<"ModelOutput">),
    before: output.isCorrection ? finalBefore(log.find, lane, output.rev, started_rev) : undefined
  })
  /** The time off before this epoch, until an output has it. */
  let unrecorded_ms = 0
  /** Asks the job's model; one that is asked `again` after a failure leaves no trace of a further one but its cost. */
  const ask = Effect.fnUntraced(function* (core: CoreLane, correction: string | undefined, again = false) {
    const { lane } = core
    const { model, prompt, tools } = yield* prompts.core(core)
    yield* compactor.before(lane, { model, tools, messages: prompt(correction)?.messages ?? [] })
    const output = yield* calls.ask(
      lane,
      "turn",
      model,
      tools,
      () => withTimeOff(prompt(correction), unrecorded_ms),
      compactor.shortening(lane),
      again
    )
    if (output?.payload.prompt?.off_ms !== undefined) unrecorded_ms = 0
    return output
  })
  const step = Effect.fnUntraced(function* (core: CoreLane, next: Exclude<CoreStep, { type: "retry" }>) {
    switch (next.type) {
      case "run":
        return yield* runner.runOpen(core.lane)
      case "stop":
        yield* runner.closeOpen(core.lane, "the job ended")
        return yield* commitEnd(
          arbiter,
          { type: "StopCore", job_name, ...next.stop, ...(yield* leftOnBranch(core)) },
          isRunning(core),
          (reason) => ({
            type: "StopCore",
            job_name,
            outcome: "error",
            summary: `the job's result cannot be kept: ${reason}`
          })
        )
      case "ask":
        return (yield* advanceScript(core.lane, "turn")) ? undefined : yield* ask(core, next.correction)
      case "await":
        return yield* Effect.timeoutOption(arbiter.until(isAnswered(core)), next.wait_ms)
    }
  })
  const started = arbiter.state().cores.get(job_name)
  if (started === undefined) return
  const off_ms = yield* timeOff(started, log)
  unrecorded_ms = off_ms
  const agesOf = yield* makeAges(started, log.find, off_ms)
  /** The job as it continues, once a skill that cannot continue has been ended. */
  const current = Effect.suspend(() => {
    const core = arbiter.state().cores.get(job_name)
    const failing =
      core?.skill === undefined ? Effect.void : commitIfDue(arbiter, { type: "FailSkill", lane: core.lane })
    return Effect.map(failing, () => arbiter.state().cores.get(job_name))
  })
  let core = yield* current
  let inVain = 0
  while (core !== undefined && core.job_id === started.job_id) {
    const ages = yield* agesOf(core)
    const next = coreStep(core, record(core), ages)
    if (next.type === "retry") {
      // The job's time stands still, so nothing of this is bound by it.
      yield* Effect.sleep(pauseBefore(inVain))
      inVain += 1
      yield* ask(core, undefined, true)
    } else {
      inVain = 0
      yield* within(core, ages, step(core, next))
    }
    core = yield* current
  }
})

/** A step cannot outlast the job: at its wall time the step is interrupted, and the next one stops the job. */
const within = <A, E, R>({ budgets }: CoreLane, { job_ms }: Ages, step: Effect.Effect<A, E, R>) => {
  const left = budgets.wall_time_ms - job_ms
  return left <= 0 ? Effect.asVoid(step) : Effect.asVoid(Effect.timeoutOption(step, left))
}
