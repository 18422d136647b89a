/** A session whose agent waits for a person: its events, its request, and what the tables have of it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft, ToolStatus } from "#schema/Event.ts"
import { CallId, EDGE, type SessionId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import type { ApprovalDecision } from "#src/choird/approvals/settleApproval.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { newTalk, type Talk, userMsg } from "./stores.ts"

export const INPUT = { to: "ada@example.org" }

const callId = (name: string) => CallId.make(name)

/** An answer of the model that calls `mail.send` once for each id. */
export const proposed = (...ids: ReadonlyArray<string>): EventDraft => ({
  event_type: "ModelOutput",
  lane: EDGE,
  payload: {
    call_id: callId(`out-${ids[0]}`),
    purpose: "turn",
    model: "small",
    tool_calls: ids.map((id) => ({ call_id: callId(id), name: "mail-send", input: INPUT })),
    finish_reason: "tool_calls",
    usage: { input_tokens: 1, output_tokens: 1 },
    latency_ms: 1
  }
})

export const requested = (id: string, confirm: "tainted" | "always" = "always"): EventDraft => ({
  event_type: "ToolCallRequested",
  lane: EDGE,
  payload: { call_id: callId(id), tool: "mail.send", input: INPUT, effect: "external", locks: [], confirm }
})

export const committed = (id: string, approval_id: string): EventDraft => ({
  event_type: "ToolCallCommitted",
  lane: EDGE,
  payload: { call_id: callId(id), locks: [], approval_id: approval_id as never }
})

export const ended = (id: string, status: ToolStatus): EventDraft => ({
  event_type: "ToolResultCommitted",
  lane: EDGE,
  payload: { call_id: callId(id), status, summary: status, duration_ms: 1 }
})

/** What the agent asks about such a call. */
export const asking = (id: string, payload: object = {}) => ({
  request_type: "confirm_tool",
  call_id: callId(id),
  payload: { tool: "mail.send", input: INPUT, lane: "edge", why: "always", ...payload }
})

/** Stores what the agent committed since a revision. */
export const append = (talk: Talk, from: number) =>
  Effect.flatMap(EventStore, (events) => events.append(talk.caller, talk.heartbeat(from)))

let messages = 1_000_000

/** A new session in which these calls wait for a person, and nobody was asked yet. */
export const waiting = (...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const talk = yield* newTalk
    messages += 1
    talk.commit(userMsg(messages), proposed(...ids), ...ids.map((id) => requested(id)))
    yield* append(talk, 0)
    return talk
  })

export const request = (talk: Talk, id: string, payload: object = {}) =>
  Effect.flatMap(Approvals, (approvals) => approvals.request(talk.caller, asking(id, payload)))

export const find = (approval_id: string) => Effect.flatMap(Approvals, (approvals) => approvals.get(approval_id))

/** A decision of somebody who saw the right payload. */
export const decide = (approval_id: string, resolution: ApprovalDecision["resolution"], who = "operator") =>
  Effect.gen(function* () {
    const approvals = yield* Approvals
    const { hash } = yield* approvals.get(approval_id)
    return yield* approvals.decide({ approval_id, resolution, hash8: hash.slice(0, 8), who, reason: null })
  })

/** Everything in the tables that an approval leaves behind in a session. */
export const traces = (session_id: SessionId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const signals = yield* sql<{
      readonly payload: unknown
      readonly acked_rev: number | null
    }>`SELECT payload, acked_rev FROM choir_control.signals
      WHERE session_id = ${session_id} AND kind = 'ApprovalResolved' ORDER BY signal_id`
    const told = yield* sql<{ readonly text: string; readonly dm: string }>`SELECT text, dm FROM choir_control.outbox
      WHERE session_id = ${session_id} AND source = 'choird' ORDER BY outbox_id`
    const audit = yield* sql<{
      readonly action: string
      readonly detail: Record<string, unknown>
    }>`SELECT action, detail
      FROM choir_control.audit WHERE session_id = ${session_id} ORDER BY id`
    return { signals, told, audit }
  })
