/**
 * What may happen: a pure function from a state and a proposal to events or a refusal. The arbiter commits what it accepts; no
 * other code makes an event (invariant 9). Rules that depend on what else runs are checked here, at the last moment (D30).
 */
import { Result } from "effect"
import type { Budgets } from "#schema/Config.ts"
import type { CoreJobStart } from "#schema/Core.ts"
import type { CoreOutcome, EventDraft, ModelOutput, PayloadOf, ToolResultCommitted } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, type JobName, type LaneId, type SessionId } from "#schema/Ids.ts"
import type { UserMessage } from "#schema/Signal.ts"
import type { LockRequest, ToolEffect } from "#schema/Tool.ts"
import { REPETITIONS_REFUSED_MIN } from "#src/shared/limits.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { CoreLane, OpenCall, SessionState } from "#src/shared/session/State.ts"

type Output = Omit<typeof ModelOutput.Type, "call_id" | "tool_calls"> & {
  readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly input: PayloadOf<"ToolCallRequested">["input"] }>
}
type ResultPayload = Omit<typeof ToolResultCommitted.Type, "call_id">

export type Proposal =
  | { readonly type: "UserMessage"; readonly message: UserMessage }
  | { readonly type: "Output"; readonly lane: LaneId; readonly output: Output }
  /** A known tool with a valid input asks for its turn. */
  | {
      readonly type: "Request"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly tool: string
      readonly input: PayloadOf<"ToolCallRequested">["input"]
      readonly effect: ToolEffect
      readonly locks: ReadonlyArray<LockRequest>
      readonly allowed_tools: ReadonlyArray<string> | undefined
    }
  /** The locks are there. */
  | {
      readonly type: "Grant"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly locks: ReadonlyArray<LockRequest>
      readonly dirty: boolean
      readonly readOnly: boolean
    }
  | { readonly type: "Result"; readonly lane: LaneId; readonly call_id: CallId; readonly result: ResultPayload }
  | {
      readonly type: "Spawn"
      readonly call_id: CallId
      readonly start: Omit<CoreJobStart, "job_id">
      readonly model: string
    }
  | { readonly type: "InjectCore"; readonly call_id: CallId; readonly job_name: JobName; readonly content: string }
  | { readonly type: "CancelCore"; readonly call_id: CallId; readonly job_name: JobName; readonly reason: string }
  /** The user's or the operator's signals, which act without a tool call. */
  | { readonly type: "SignalInject"; readonly signal_id: string; readonly content: string }
  | { readonly type: "SignalCancel"; readonly signal_id: string; readonly job_name: JobName }
  | { readonly type: "SignalCompact"; readonly signal_id: string }
  | {
      readonly type: "StopCore"
      readonly job_name: JobName
      readonly outcome: CoreOutcome
      readonly summary: string
      readonly result?: PayloadOf<"CoreStopped">["result"]
    }
  /** Answers the open turn, or reports on the oldest stopped job. */
  | { readonly type: "Answer"; readonly text: string }
  | { readonly type: "Notice"; readonly text: string }
  /** Ends the session at one of its limits; the text says how to go on. */
  | { readonly type: "End"; readonly by: "budget"; readonly reason: string; readonly text: string }

/** What a decision may know besides the state. */
export interface Situation {
  readonly session_id: SessionId
  readonly epoch: number
  readonly budgets: Budgets
  readonly confirm_external: "never" | "tainted" | "always"
}

/** `reason` is a sentence for the model or the log; `exhausted` names the session's limit that is reached. */
export interface Rejected {
  readonly reason: string
  readonly exhausted?: string
}
export type Decision = Result.Result<ReadonlyArray<EventDraft>, Rejected>

const accept = (...events: ReadonlyArray<EventDraft>): Decision => Result.succeed(events)
const reject = (reason: string, exhausted?: string): Decision =>
  Result.fail(exhausted === undefined ? { reason } : { reason, exhausted })

/** The session's limit that is reached, in words for the user, or `undefined`. */
export const exhaustedLimit = ({ spent }: SessionState, budgets: Budgets): string | undefined => {
  if (spent.tokens >= budgets.total_session_tokens)
    return `the session's limit of ${budgets.total_session_tokens} tokens (budgets.total_session_tokens) is reached`
  if (budgets.max_cost_usd !== null && spent.cost_usd >= budgets.max_cost_usd)
    return `the session's limit of ${budgets.max_cost_usd} USD (budgets.max_cost_usd) is reached`
  return undefined
}

const toolCallsLeft = ({ spent }: SessionState, budgets: Budgets): string | undefined =>
  spent.tool_calls >= budgets.max_tool_calls_per_session
    ? `the session's limit of ${budgets.max_tool_calls_per_session} tool calls (budgets.max_tool_calls_per_session) is reached`
    : undefined

const callOf = (state: SessionState, lane: LaneId, call_id: CallId): OpenCall | undefined =>
  laneOf(state, lane)?.calls.find((call) => call.call_id === call_id)

const output = (state: SessionState, lane: LaneId, draft: Output, { epoch, session_id }: Situation): Decision => {
  if (laneOf(state, lane) === undefined) return reject(`the job on ${lane} has stopped`)
  const call_id = `${session_id}-${epoch}-${state.rev + 1}`
  const tool_calls = draft.tool_calls.map((call, index) => ({ ...call, call_id: CallId.make(`${call_id}-${index}`) }))
  return accept({
    event_type: "ModelOutput",
    lane,
    payload: { ...draft, call_id: CallId.make(call_id), tool_calls }
  })
}

const jobLimit = (core: CoreLane): string | undefined =>
  core.tool_calls >= core.budgets.max_tool_calls
    ? `the job's limit of ${core.budgets.max_tool_calls} tool calls is reached; finish with what you have`
    : undefined

const request = (
  state: SessionState,
  proposal: Extract<Proposal, { type: "Request" }>,
  { budgets, confirm_external }: Situation
): Decision => {
  const { allowed_tools, call_id, effect, input, lane, locks, tool } = proposal
  const memory = laneOf(state, lane)
  const call = callOf(state, lane, call_id)
  if (memory === undefined || call === undefined) return reject("the call is not open")
  const exhausted = toolCallsLeft(state, budgets)
  if (exhausted !== undefined) return reject(exhausted, exhausted)
  const core = "job_id" in memory ? memory : undefined
  const limit = core === undefined ? undefined : jobLimit(core)
  if (limit !== undefined) return reject(limit)
  if (allowed_tools !== undefined && !allowed_tools.includes(tool))
    return reject(`the job may not use ${tool}; allowed: ${allowed_tools.join(", ")}`)
  if (memory.repetition.call === call.digest && memory.repetition.times >= REPETITIONS_REFUSED_MIN)
    return reject(
      `the same call gave the same result ${REPETITIONS_REFUSED_MIN} times; do something else, or finish and say what is missing`
    )
  if (effect === "external" && (confirm_external === "always" || (confirm_external === "tainted" && memory.tainted)))
    return reject(
      `${tool} acts outside the workspace and needs a person's confirmation here (approvals.confirm_external is "${confirm_external}")`
    )
  return accept({ event_type: "ToolCallRequested", lane, payload: { call_id, tool, input, effect, locks } })
}

/** D30: while a core runs, edge only reads. What is granted before a spawn commits finishes first, see `spawn`. */
const grant = (state: SessionState, proposal: Extract<Proposal, { type: "Grant" }>): Decision => {
  const { call_id, dirty, lane, locks, readOnly } = proposal
  if (lane === EDGE && !readOnly && state.cores.size > 0)
    return reject(
      `while core jobs run (${[...state.cores.keys()].join(", ")}) edge only reads; let a job do it, or wait until they end`
    )
  if (callOf(state, lane, call_id) === undefined) return reject("the call is not open")
  return accept({ event_type: "ToolCallCommitted", lane, payload: { call_id, locks, ...(dirty ? { dirty } : {}) } })
}

/** Edge's calls that run and change something. A spawn waits for them (D30). */
export const edgeWrites = (state: SessionState): ReadonlyArray<OpenCall> =>
  state.edge.calls.filter((call) => call.stage === "committed" && call.effect !== "none")

const control = (call_id: CallId, summary: string, output: PayloadOf<"ToolResultCommitted">["output"]) =>
  [
    { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id, locks: [] } },
    {
      event_type: "ToolResultCommitted",
      lane: EDGE,
      payload: {
        call_id,
        status: "success",
        summary,
        duration_ms: 0,
        ...(output === undefined ? {} : { output })
      }
    }
  ] as const satisfies ReadonlyArray<EventDraft>

const spawn = (
  state: SessionState,
  { call_id, model, start }: Extract<Proposal, { type: "Spawn" }>,
  { budgets }: Situation
): Decision => {
  const { job_name } = start
  const [write] = edgeWrites(state)
  if (write !== undefined) return reject(`${write.name} still runs; start the job when it has ended`)
  if (state.cores.has(job_name)) return reject(`a job named ${job_name} already runs; choose another name`)
  if (state.cores.size >= budgets.max_core_jobs)
    return reject(`${budgets.max_core_jobs} jobs run already (budgets.max_core_jobs); wait for one to end`)
  const wall = start.tool_constraints.time_budget_ms
  const [committed, result] = control(call_id, `job ${job_name} was started`, { job_name, status: "started" })
  return accept(
    committed,
    {
      event_type: "CoreStarted",
      lane: coreLane(job_name),
      payload: {
        job_id: call_id,
        job_name,
        start: { ...start, job_id: call_id },
        model,
        budgets: {
          max_steps: budgets.per_job_max_steps,
          max_tool_calls: budgets.per_job_max_tool_calls,
          wall_time_ms: wall > 0 ? Math.min(wall, budgets.per_job_wall_time_ms) : budgets.per_job_wall_time_ms,
          max_injections: budgets.max_injections_per_job
        }
      }
    },
    result
  )
}

const noJob = (state: SessionState, job: string): string =>
  `no job named ${job} runs; running: ${[...state.cores.keys()].join(", ") || "none"}`

const injectCore = (state: SessionState, proposal: Extract<Proposal, { type: "InjectCore" }>): Decision => {
  const { call_id, content, job_name } = proposal
  const core = state.cores.get(job_name)
  if (core === undefined) return reject(noJob(state, job_name))
  if (core.injections >= core.budgets.max_injections)
    return reject(`the job ${job_name} took its limit of ${core.budgets.max_injections} injections`)
  const [committed, result] = control(call_id, `the instruction was passed to ${job_name}`, { job_name })
  const target = coreLane(job_name)
  return accept(
    committed,
    { event_type: "InjectedInstruction", lane: target, payload: { target, source: "edge", content } },
    result
  )
}

const cancelCore = (state: SessionState, proposal: Extract<Proposal, { type: "CancelCore" }>): Decision => {
  const { call_id, job_name, reason } = proposal
  if (!state.cores.has(job_name)) return reject(noJob(state, job_name))
  const [committed, result] = control(call_id, `the job ${job_name} is being cancelled`, { job_name })
  const target = coreLane(job_name)
  return accept(committed, { event_type: "Cancelled", lane: target, payload: { target, by: "edge", reason } }, result)
}

const signalCancel = (state: SessionState, signal_id: string, job_name: JobName): Decision => {
  const target = coreLane(job_name)
  const reason = state.cores.has(job_name) ? "cancelled by the user" : "no_such_job"
  const payload = { signal_id, target, by: "user", reason } as PayloadOf<"Cancelled">
  return accept({ event_type: "Cancelled", lane: target, payload })
}

const signalInject = (state: SessionState, signal_id: string, content: string): Decision => {
  const refused = state.ended === undefined ? {} : { refused: "the session has ended" }
  const payload = { signal_id, target: EDGE, source: "user", content, ...refused } as PayloadOf<"InjectedInstruction">
  return accept({ event_type: "InjectedInstruction", lane: EDGE, payload })
}

const stopCore = (state: SessionState, proposal: Extract<Proposal, { type: "StopCore" }>): Decision => {
  const { job_name, outcome, result, summary } = proposal
  const core = state.cores.get(job_name)
  if (core === undefined) return reject(noJob(state, job_name))
  const { cost_usd, input_tokens, output_tokens } = core.spent
  return accept({
    event_type: "CoreStopped",
    lane: core.lane,
    payload: {
      job_id: core.job_id,
      job_name,
      outcome,
      summary,
      usage: { input_tokens, output_tokens, ...(cost_usd > 0 ? { cost_usd } : {}) },
      ...(result === undefined ? {} : { result })
    }
  })
}

const answer = (state: SessionState, text: string): Decision => {
  const { turn } = state.edge
  if (turn?.kind === "turn")
    return accept({
      event_type: "AgentMessage",
      lane: EDGE,
      payload: { kind: "reply", text, in_reply_to: turn.inbox_id }
    })
  const report = turn?.report ?? state.reports[0]
  if (report === undefined) return reject("no turn is open and no job is to be reported")
  const in_reply_to = report.inbox_id === undefined ? {} : { in_reply_to: report.inbox_id }
  return accept({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "report", text, ...in_reply_to } })
}

const end = (state: SessionState, { by, reason, text }: Extract<Proposal, { type: "End" }>): Decision => {
  const last: EventDraft =
    state.edge.turn?.kind === "turn"
      ? {
          event_type: "AgentMessage",
          lane: EDGE,
          payload: { kind: "reply", text, in_reply_to: state.edge.turn.inbox_id }
        }
      : { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text } }
  return accept({ event_type: "Cancelled", lane: EDGE, payload: { target: EDGE, by, reason } }, last)
}

export const decide = (state: SessionState, proposal: Proposal, situation: Situation): Decision => {
  switch (proposal.type) {
    case "UserMessage": {
      const { attachments, dm, inbox_id, text } = proposal.message
      return BigInt(inbox_id) <= state.last_inbox_id
        ? reject("the message was taken before")
        : accept({ event_type: "UserMsg", lane: EDGE, payload: { inbox_id, dm, text, attachments } })
    }
    case "Output":
      return output(state, proposal.lane, proposal.output, situation)
    case "Request":
      return request(state, proposal, situation)
    case "Grant":
      return grant(state, proposal)
    case "Result":
      return accept({
        event_type: "ToolResultCommitted",
        lane: proposal.lane,
        payload: { call_id: proposal.call_id, ...proposal.result }
      })
    case "Spawn":
      return spawn(state, proposal, situation)
    case "InjectCore":
      return injectCore(state, proposal)
    case "CancelCore":
      return cancelCore(state, proposal)
    case "SignalInject":
      return signalInject(state, proposal.signal_id, proposal.content)
    case "SignalCancel":
      return signalCancel(state, proposal.signal_id, proposal.job_name)
    case "SignalCompact":
      return accept({
        event_type: "CompactionCommitted",
        lane: EDGE,
        payload: {
          signal_id: proposal.signal_id,
          delta: { mode: "append" },
          boundary_rev: 0
        } as PayloadOf<"CompactionCommitted">
      })
    case "StopCore":
      return stopCore(state, proposal)
    case "Answer":
      return answer(state, proposal.text)
    case "Notice":
      return accept({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text: proposal.text } })
    case "End":
      return end(state, proposal)
  }
}
