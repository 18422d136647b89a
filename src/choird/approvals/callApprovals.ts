/**
 * The effect of events on the approvals of their calls: a committed call executes what was approved, and an ended call needs no decision
 * any more. The rows are read once, under the lock of their session; that reading decides both whether the events may be stored and what
 * follows from them.
 */
import { Clock, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import type { CallId, SessionId } from "#schema/Ids.ts"
import { provideDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { acknowledgeResolution, type ApprovalRow, findCalls, isConfirmation, resolveApproval } from "./approvalRows.ts"
import { mayFollow } from "./approvalStatus.ts"
import { overText, visibleLine } from "./approvalText.ts"
import { editCard } from "./askPerson.ts"
import { ProofOfApproval, beginExecution } from "./ProofOfApproval.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { AppendRules } from "#src/choird/sessions/AppendRules.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

type CallResult = Pick<EventOf<"ToolResultCommitted">["payload"], "status" | "summary">

/** Characters of the reason why an approved call did not run. */
const NOT_RUN_CHARS_MAX = 200

/** `begin` runs the approved call; the others belong to the call's result, for whose revision the agent needs no decision. */
export type CallStep =
  | { readonly type: "begin"; readonly proof: ProofOfApproval }
  | { readonly type: "expire"; readonly row: ApprovalRow; readonly rev: number }
  | { readonly type: "end"; readonly row: ApprovalRow; readonly rev: number; readonly result: CallResult }

type OfCall = EventOf<"ToolCallCommitted"> | EventOf<"ToolResultCommitted">

/** The events of calls that a person is or was asked about: calls open before, and those that the events open. */
const confirmed = (before: SessionState, events: ReadonlyArray<ChoirEvent>): ReadonlyArray<OfCall> => {
  const lanes = [before.edge, ...before.cores.values()]
  // A turn that was set aside still has its calls: they end with it, or run once it is taken up.
  const calls_open = [...lanes.flatMap(({ calls }) => calls), ...(before.edge.parked?.calls ?? [])]
  const open = calls_open.filter(({ confirm }) => confirm !== undefined)
  const asked = events.flatMap((event) =>
    event.event_type === "ToolCallRequested" && event.payload.confirm !== undefined ? [event.payload] : []
  )
  const calls = new Set([...open, ...asked].map(({ call_id }) => call_id))
  return events.flatMap((event) =>
    (event.event_type === "ToolCallCommitted" || event.event_type === "ToolResultCommitted") &&
    calls.has(event.payload.call_id)
      ? [event]
      : []
  )
}

/**
 * The steps of the rows, in the order of the events; or the reason to refuse the events: one of them names an approval that nobody gave.
 * No honest agent sends one, and the log must never claim an approval that no person gave (D16, R54). Pure.
 */
export const decideSteps = (
  events: ReadonlyArray<OfCall>,
  found: ReadonlyMap<CallId, ApprovalRow>
): Result.Result<ReadonlyArray<CallStep>, string> => {
  const rows = new Map(found)
  const steps: Array<CallStep> = []
  for (const { event_type, payload, rev } of events) {
    const row = rows.get(payload.call_id)
    if (event_type === "ToolCallCommitted") {
      const isIts = row !== undefined && row.approval_id === payload.approval_id
      const proof = isIts ? ProofOfApproval.of(row) : undefined
      if (proof === undefined) return Result.fail(`event ${rev} commits a call that no person approved`)
      if (payload.grant_id !== undefined && payload.grant_id !== row?.grant_id)
        return Result.fail(`event ${rev} names a grant that did not approve its call`)
      rows.set(payload.call_id, { ...proof.row, status: "executing" })
      steps.push({ type: "begin", proof })
    } else if (row?.status === "pending") steps.push({ type: "expire", row, rev })
    else if (row !== undefined) steps.push({ type: "end", row, rev, result: payload })
  }
  return Result.succeed(steps)
}

/** {@link decideSteps} by the stored rows. No query if none of the calls waits for a person or was approved. */
const stepsOfCalls = Effect.fnUntraced(function* (
  session_id: SessionId,
  before: SessionState,
  events: ReadonlyArray<ChoirEvent>
) {
  const ofCalls = confirmed(before, events)
  if (ofCalls.length === 0) return Result.succeed([])
  const rows = yield* findCalls(
    session_id,
    ofCalls.map(({ payload }) => payload.call_id)
  )
  // A proposal outlives the call that made it.
  return decideSteps(ofCalls, new Map(rows.filter(isConfirmation).map((row) => [row.call_id, row])))
})

/** The outcome of a call, and the reason why an approved one never ran. */
const outcomeOf = ({ status: before }: ApprovalRow, { status, summary }: CallResult): string =>
  before === "approved" ? `not run: ${firstPart(visibleLine(summary || status), NOT_RUN_CHARS_MAX)}` : status

const end = (row: ApprovalRow, result: CallResult) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const last = result.status === "success" ? "done" : "failed"
    const next = mayFollow(row.status, last) ? last : row.status
    const outcome = outcomeOf(row, result)
    return sql`UPDATE choir_control.pending_approvals SET status = ${next}, outcome = ${outcome}
    WHERE id = ${rowId(row.approval_id) ?? 0n}`
  })

/** Ends a request whose call ended before anybody decided; its card says so, and has no buttons any more. */
const makeExpire = Effect.gen(function* () {
  const config = yield* ConfigStore
  const outbox = yield* Outbox
  const sql = yield* SqlClient.SqlClient
  return Effect.fnUntraced(function* (row: ApprovalRow) {
    const now_ms = yield* Clock.currentTimeMillis
    const decider = { who: `agent:${row.agent_id}`, reason: "the call has ended", now_ms }
    const resolved = yield* resolveApproval(row, "expired", decider)
    const dm = yield* editCard((yield* config.current).config, resolved, "card", overText(resolved))
    if (dm !== undefined) yield* sql.afterCommit(outbox.wake(dm))
  })
})

/** The rule of confirmed calls for every append. */
export const layerAppendRules = Layer.effect(
  AppendRules,
  Effect.gen(function* () {
    const onDatabase = yield* provideDatabase
    const expire = yield* makeExpire
    const take = Effect.fnUntraced(function* (step: CallStep) {
      if (step.type === "begin") return yield* beginExecution(step.proof)
      const { rev, row } = step
      yield* step.type === "end" ? end(row, step.result) : expire(row)
      return yield* acknowledgeResolution(row, rev)
    })
    return AppendRules.of({
      judge: (session_id, before, events) =>
        Effect.map(
          onDatabase(stepsOfCalls(session_id, before, events)),
          Result.map((steps) => onDatabase(Effect.forEach(steps, take, { discard: true })))
        )
    })
  })
)
