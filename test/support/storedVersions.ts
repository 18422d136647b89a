/** Stored events of every form that a log may have: of version 1, reduced, and of a later Choir. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { CallId, EDGE, type SessionId } from "#schema/Ids.ts"
import { inTransaction } from "#src/choird/database/DatabaseAway.ts"
import { forgetPayloads, reductionOf } from "#src/choird/sessions/forgetPayloads.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { rowOf } from "#src/shared/events/eventRow.ts"
import { chainEvent, genesis } from "#src/shared/events/hashChain.ts"
import { reply, SALT, type Talk, userMsg } from "./stores.ts"

const NEW_SALT = "fe".repeat(16)

/** Events of a later Choir. */
export const PLAN = { v: 2, event_type: "PlanCommitted" }
export const LATER = { v: 3, event_type: "UserMsg" }
/** Of a known type, with a payload that this program refuses: an added field, and an added literal. */
export const GROWN = { v: 2, event_type: "UserMsg", payload: { ...userMsg(3).payload, mood: "calm" } }
export const WIDENED = { v: 2, event_type: "AgentMessage", payload: { ...reply(3).payload, kind: "poem" } }

/** An event that lists what is left of others of the talk. */
export const forgets = (talk: Talk, ...revs: ReadonlyArray<number>): EventDraft => ({
  event_type: "MemoryWriteCommitted",
  lane: EDGE,
  payload: {
    call_id: CallId.make(`forget-${talk.rev}`),
    store: "session",
    action: "forget",
    forgotten: revs.map((rev) => ({ rev, new_digest: reductionOf(talk.events[rev - 1]!, NEW_SALT)!.new_digest }))
  }
})

/** Reduces events that the log lists so; answers how many. */
export const reduce = (session_id: SessionId, ...revs: ReadonlyArray<number>) =>
  inTransaction(
    forgetPayloads(
      session_id,
      revs.map((rev) => ({ rev, salt: NEW_SALT }))
    )
  )

/** Stores a talk's events as an agent of version 1 committed them, in rows of before migration 0009. */
export const storeVersion1 = Effect.fnUntraced(function* (talk: Talk) {
  const sql = yield* SqlClient.SqlClient
  const { session_id } = talk.caller
  let hash = genesis(session_id)
  for (const { salt: _, ...event } of talk.events) {
    const old = { ...event, v: 1 } as ChoirEvent
    const link = chainEvent(hash, old)
    hash = link.hash
    yield* sql`INSERT INTO choir_control.session_events (session_id, rev, event_type, lane, payload, created_at, canonical, hash)
      VALUES (${session_id}, ${old.rev}, ${old.event_type}, ${old.lane}, ${link.payload}::jsonb, ${old.created_at},
        ${canonicalJson(old)}, ${hash})`
    talk.links[old.rev - 1] = link
  }
  yield* sql`UPDATE choir_control.sessions SET last_rev = ${talk.rev}, head_hash = ${hash} WHERE session_id = ${session_id}`
})

/** Stores events as a later Choir would write them. */
export const addNewer = Effect.fnUntraced(function* (
  talk: Talk,
  ...added: ReadonlyArray<{ readonly v: number; readonly event_type: string; readonly payload?: object }>
) {
  const sql = yield* SqlClient.SqlClient
  const { session_id } = talk.caller
  for (const newer of added) {
    const payload = { plan: [1, "two"] }
    const event = { ...talk.events.at(-1)!, payload, ...newer, rev: talk.rev + 1, salt: SALT } as never
    const link = chainEvent(talk.links.at(-1)!.hash, event)
    talk.links.push(link)
    const row = rowOf(link)
    yield* sql`INSERT INTO choir_control.session_events (session_id, rev, v, event_type, lane, created_at, bytes, salt, body, hash)
      VALUES (${session_id}, ${row.rev}, ${row.v}, ${row.event_type}, ${row.lane}, ${row.created_at}, ${link.bytes},
        ${row.salt}, ${row.body}, ${row.hash})`
  }
  yield* sql`UPDATE choir_control.sessions SET last_rev = ${talk.rev}, head_hash = ${talk.links.at(-1)!.hash},
      choird_version = '9.1.0' WHERE session_id = ${session_id}`
})
