/** Model outputs and the way of their tool calls: what may be asked for, what may run, what it came to (spec 7.4, 8.9). */
import type { Budgets } from "#schema/Config.ts"
import { CallId, EDGE, type LaneId } from "#schema/Ids.ts"
import { REPETITIONS_REFUSED_MIN } from "#src/shared/limits.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { CoreLane, OpenCall, SessionState } from "#src/shared/session/State.ts"
import { accept, type Decision, type Output, type Proposal, reject, type Situation } from "./Proposal.ts"

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

export const output = (
  state: SessionState,
  lane: LaneId,
  draft: Output,
  { epoch, session_id }: Situation
): Decision => {
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

export const request = (
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
export const grant = (state: SessionState, proposal: Extract<Proposal, { type: "Grant" }>): Decision => {
  const { call_id, dirty, lane, locks, readOnly } = proposal
  if (lane === EDGE && !readOnly && state.cores.size > 0)
    return reject(
      `while core jobs run (${[...state.cores.keys()].join(", ")}) edge only reads; let a job do it, or wait until they end`
    )
  if (callOf(state, lane, call_id) === undefined) return reject("the call is not open")
  return accept({ event_type: "ToolCallCommitted", lane, payload: { call_id, locks, ...(dirty ? { dirty } : {}) } })
}
