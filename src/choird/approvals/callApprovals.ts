/**
 * What a tool call's events say of its approval, within their transaction: a call that was committed executes what was approved, and
 * a call that ended needs no decision any more.
 */
import { Clock, Effect, type Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { ConfirmTool } from "#schema/Approval.ts"
import type { ChoirEvent, EventOf, ToolStatus } from "#schema/Event.ts"
import { type CallId, EDGE, type LaneId, type SessionId } from "#schema/Ids.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { toWireName } from "#schema/Tool.ts"
import { rowId } from "#src/shared/rowId.ts"
import { callDigest } from "#src/shared/session/calls.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { acknowledgeResolution, type ApprovalRow, findCall, isConfirmation, resolveApproval } from "./approvalRows.ts"
import { mayFollow } from "./approvalStatus.ts"
import { Approved, beginExecution } from "./Approved.ts"

/** Whether the stored log has this very call, and it waits for a person: what is shown is then what would run (R54). */
export const isAsked = (state: SessionState, call_id: CallId, { input, lane, tool, why }: ConfirmTool): boolean => {
  const call = laneOf(state, lane)?.calls.find((open) => open.call_id === call_id)
  return (
    call?.stage === "requested" &&
    call.confirm === why &&
    call.name.replaceAll(".", "-") === toWireName(tool) &&
    call.digest === callDigest(call.name, input)
  )
}

/** The lane whose stored log has this very proposal as an open call, which began to run (R54). */
export const proposedOn = (
  state: SessionState,
  call_id: CallId,
  kind: ProposalKind,
  payload: Schema.Json
): LaneId | undefined => {
  const lanes = [{ lane: EDGE, calls: state.edge.calls }, ...state.cores.values()]
  for (const { calls, lane } of lanes) {
    const call = calls.find((open) => open.call_id === call_id)
    if (call === undefined) continue
    const isIt =
      call.stage === "committed" &&
      call.name.replaceAll(".", "-") === `choir-propose-${kind}` &&
      call.digest === callDigest(call.name, payload)
    return isIt ? lane : undefined
  }
  return undefined
}

/** The calls that a person is or was asked about, among those open before and those that these events open. */
const confirmed = (before: SessionState, events: ReadonlyArray<ChoirEvent>): ReadonlySet<CallId> => {
  const lanes = [before.edge, ...before.cores.values()]
  const open = lanes.flatMap(({ calls }) => calls.filter(({ confirm }) => confirm !== undefined))
  const asked = events.flatMap((event) =>
    event.event_type === "ToolCallRequested" && event.payload.confirm !== undefined ? [event.payload] : []
  )
  return new Set([...open, ...asked].map(({ call_id }) => call_id))
}

/** The proof for a call that goes on, if a person approved it. */
const proofOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  { payload: { approval_id, call_id } }: EventOf<"ToolCallCommitted">
) {
  const row = yield* findCall(sql, session_id, call_id)
  const isIts = row !== undefined && row.approval_id === approval_id && isConfirmation(row)
  return isIts ? Approved.of(row) : undefined
})

/**
 * Why these events cannot be: one of them names an approval that nobody gave. No honest agent ever sends one, and the log is to say of no
 * call that a person approved it who did not (D16, R54).
 */
export const unapprovedCommit = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  before: SessionState,
  events: ReadonlyArray<ChoirEvent>
) {
  const calls = confirmed(before, events)
  if (calls.size === 0) return undefined
  for (const event of events)
    if (event.event_type === "ToolCallCommitted" && calls.has(event.payload.call_id)) {
      const proof = yield* proofOf(sql, session_id, event)
      if (proof === undefined) return `event ${event.rev} goes on with a call that no person approved`
    }
  return undefined
})

const committed = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  event: EventOf<"ToolCallCommitted">
) {
  const proof = yield* proofOf(sql, session_id, event)
  if (proof === undefined) return yield* Effect.die(new Error(`event ${event.rev} was stored without its approval`))
  return yield* beginExecution(sql, proof)
})

const end = (sql: SqlClient.SqlClient, row: ApprovalRow, status: ToolStatus) => {
  const last = status === "success" ? "done" : "failed"
  const next = mayFollow(row.status, last) ? last : row.status
  return sql`UPDATE choir_control.pending_approvals SET status = ${next}, outcome = ${status}
    WHERE id = ${rowId(row.approval_id) ?? 0n}`
}

const ended = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  { payload: { call_id, status }, rev }: EventOf<"ToolResultCommitted">
) {
  const row = yield* findCall(sql, session_id, call_id)
  // What is proposed lives on after the call that proposed it.
  if (row === undefined || !isConfirmation(row)) return
  const now_ms = yield* Clock.currentTimeMillis
  if (row.status === "pending")
    yield* resolveApproval(sql, row, "expired", { who: `agent:${row.agent_id}`, reason: "the call has ended", now_ms })
  else yield* end(sql, row, status)
  yield* acknowledgeResolution(sql, row, rev)
})

/** Costs nothing while no call of the session waits for a person or was approved. */
export const followCalls = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  before: SessionState,
  events: ReadonlyArray<ChoirEvent>
) {
  const calls = confirmed(before, events)
  if (calls.size === 0) return
  for (const event of events) {
    if (event.event_type === "ToolCallCommitted" && calls.has(event.payload.call_id))
      yield* committed(sql, session_id, event)
    if (event.event_type === "ToolResultCommitted" && calls.has(event.payload.call_id))
      yield* ended(sql, session_id, event)
  }
})
