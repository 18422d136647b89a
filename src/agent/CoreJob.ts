/** A core job: one task, many steps, one result (spec 7.3). Like edge, it knows what to do next from the state alone. */
import { Clock, Effect, Result, Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { JobName } from "#schema/Ids.ts"
import { CORE_SUMMARY_CHARS_MAX, REPETITIONS_STUCK_MIN } from "#src/shared/limits.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { Arbiter } from "./Arbiter.ts"
import type { Proposal } from "./decide.ts"
import { EventLog } from "./EventLog.ts"
import { ImageTexts } from "./ImageTexts.ts"
import { ModelCalls } from "./ModelCalls.ts"
import { corePrompt } from "./Prompt.ts"
import { resultProblem } from "./resultSchema.ts"
import { ToolRegistry } from "./ToolRegistry.ts"
import { ToolRunner } from "./ToolRunner.ts"

type Stop = Omit<Extract<Proposal, { type: "StopCore" }>, "type" | "job_name">

export type CoreStep =
  | { readonly type: "run" }
  | { readonly type: "ask"; readonly correction: string | undefined }
  | { readonly type: "stop"; readonly stop: Stop }

/** What a job knows of its newest model output and its start. */
export interface CoreRecord {
  readonly output: EventOf<"ModelOutput"> | undefined
  readonly started: EventOf<"CoreStarted">
  /** Whether an instruction came that the output's model may not have seen: after it, or while it was asked. */
  readonly instructed: boolean
  /** Whether the output before was a final one too, so that this one is its correction. */
  readonly corrected: boolean
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const stop = (outcome: Stop["outcome"], summary: string, result?: Stop["result"]): CoreStep => ({
  type: "stop",
  stop: { outcome, summary: summary.slice(0, CORE_SUMMARY_CHARS_MAX), ...(result === undefined ? {} : { result }) }
})

const timeLimit = ({ budgets, started_at }: CoreLane, now: number): string | undefined =>
  now - Date.parse(started_at) >= budgets.wall_time_ms
    ? `the job's limit of ${Math.round(budgets.wall_time_ms / 1000)} s is reached`
    : undefined

/** The job's limit that is reached before another model call, in words. */
const spentLimit = (core: CoreLane, now: number): string | undefined =>
  core.step >= core.budgets.max_steps
    ? `the job's limit of ${core.budgets.max_steps} steps is reached`
    : timeLimit(core, now)

/** A final text is the result; with an output schema it must fit it, and one correction is asked for. */
const finish = (text: string, { corrected, started }: CoreRecord): CoreStep => {
  const { output_schema } = started.payload.start
  if (output_schema === undefined) return stop("completed", text, text)
  const parsed = decodeJson(text.trim().replace(/^```(?:json)?\s*|\s*```$/gu, ""))
  const problem = Result.isFailure(parsed) ? "the result is not JSON" : resultProblem(output_schema, parsed.success)
  if (problem === undefined && Result.isSuccess(parsed)) return stop("completed", text, parsed.success)
  if (corrected) return stop("error", `the job ended without the result that was asked for: ${problem}`)
  return { type: "ask", correction: `The result does not fit what was asked for: ${problem}.` }
}

export const coreStep = (core: CoreLane, record: CoreRecord, now: number): CoreStep => {
  if (core.cancelled !== undefined) return stop("cancelled", core.cancelled)
  if (core.state === "CORE_WAITING_TOOL") {
    // Nothing runs past the job's time, nor is what the time cut off run again.
    const late = timeLimit(core, now)
    return late === undefined ? { type: "run" } : stop("budget", late)
  }
  const { output } = record
  if (output?.payload.error !== undefined) return stop("error", output.payload.error.message)
  if (core.repetition.times >= REPETITIONS_STUCK_MIN) return stop("stuck", "the job kept repeating the same step")
  const final = output !== undefined && output.payload.tool_calls.length === 0 && !record.instructed
  const next = final ? finish(output.payload.text ?? "", record) : ({ type: "ask", correction: undefined } as const)
  if (next.type === "stop") return next
  const limit = spentLimit(core, now)
  return limit === undefined ? next : stop("budget", limit)
}

/** Runs a job to its end and commits that end. */
export const runCore = Effect.fn("CoreJob.run")(function* (job_name: JobName) {
  const arbiter = yield* Arbiter
  const calls = yield* ModelCalls
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const runner = yield* ToolRunner
  const texts = yield* ImageTexts

  const record = (core: CoreLane): CoreRecord => {
    const started = log.get(core.started_rev) as EventOf<"CoreStarted">
    const events = core.window.map(log.get)
    const outputs = events.filter((event) => event.event_type === "ModelOutput")
    const output = outputs.at(-1)
    const asked = events.findLast((event) => event.rev < core.output_rev && event.event_type !== "InjectedInstruction")
    const instructed = events.some(
      (event) => event.event_type === "InjectedInstruction" && event.rev > (asked?.rev ?? 0)
    )
    const corrected = outputs.at(-2)?.payload.tool_calls.length === 0
    return { output, started, instructed, corrected }
  }
  const step = Effect.fnUntraced(function* (core: CoreLane) {
    const known = record(core)
    const next = coreStep(core, known, yield* Clock.currentTimeMillis)
    switch (next.type) {
      case "run":
        return yield* runner.runOpen(core.lane)
      case "stop":
        yield* runner.closeOpen(core.lane, "cancelled", "the job ended")
        return yield* Effect.ignore(arbiter.commit({ type: "StopCore", job_name, ...next.stop }))
      case "ask": {
        const { allowed_tools } = known.started.payload.start.tool_constraints
        const tools = registry.offered(core.lane, allowed_tools)
        return yield* calls.ask(core.lane, "turn", core.model, tools, (room) =>
          corePrompt(arbiter.state().cores.get(job_name) ?? core, log.get, texts, room, next.correction)
        )
      }
    }
  })
  const first = arbiter.state().cores.get(job_name)?.job_id
  let core = arbiter.state().cores.get(job_name)
  while (core !== undefined && core.job_id === first) {
    yield* within(core, step(core))
    core = arbiter.state().cores.get(job_name)
  }
})

/** A step cannot outlast the job: at its wall time the step is interrupted, and the next one stops the job. */
const within = <A, E, R>(core: CoreLane, step: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const left = Date.parse(core.started_at) + core.budgets.wall_time_ms - now
    return left <= 0 ? Effect.asVoid(step) : Effect.asVoid(Effect.timeoutOption(step, left))
  })
