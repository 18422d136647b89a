/**
 * Forgetting events of a session (D52): one event at the end of its log lists what is left of each payload, and the payloads are reduced in the
 * same transaction. It is the one event that choird writes itself, on a person's order and while no agent can append: an epoch that might is
 * fenced.
 */
import { randomBytes } from "node:crypto"
import { Clock, Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent, Forgotten } from "#schema/Event.ts"
import { CallId, EDGE, Rev, type SessionId, Sha256 } from "#schema/Ids.ts"
import { eventOf, readRow } from "#src/shared/events/eventRow.ts"
import { chainEvent, SALT_BYTES } from "#src/shared/events/hashChain.ts"
import { archiveOf } from "./archivedLog.ts"
import { forgetPayloads, reductionOf } from "./forgetPayloads.ts"
import { headHash } from "./readLog.ts"
import { insertEvents, lockSession, readNamed } from "./storedEvents.ts"

/** Events that one listing names, so that it stays far below EVENT_BYTES_MAX and its transaction short. */
export const FORGOTTEN_EVENTS_MAX = 250

/** The result of forgetting events. */
export interface ForgottenEvents {
  readonly reduced: number
  /** Events of version 1, whose payloads the chain itself covers. */
  readonly fixed: number
  /** Whether its session is archived: then nothing was reduced. */
  readonly archived: boolean
}

const salt = () => randomBytes(SALT_BYTES).toString("hex")

const listing = (rev: number, created_at: string, forgotten: ReadonlyArray<Forgotten>) =>
  ({
    v: 2,
    rev: Rev.make(rev),
    event_type: "MemoryWriteCommitted",
    lane: EDGE,
    payload: { call_id: CallId.make(`forget-${rev}`), store: "session", action: "forget", forgotten },
    created_at,
    salt: salt()
  }) as ChoirEvent

/** The stored events of some revisions, and how much each may lose. */
const reductionsOf = Effect.fnUntraced(function* (session_id: SessionId, revs: ReadonlyArray<number>) {
  const rows = yield* readNamed(session_id, revs)
  let fixed = 0
  const reductions = rows.flatMap((row) => {
    const event = Result.getOrUndefined(
      Result.flatMap(Result.mapError(readRow(row), String), (text) => Result.mapError(eventOf(text), String))
    )
    if (event === undefined) return []
    const reduction = reductionOf(event, salt())
    if (reduction === undefined) return []
    if (event.v === 1) fixed += 1
    return event.v === 1 ? [] : [reduction]
  })
  return { reductions, fixed }
})

/**
 * Reduces up to FORGOTTEN_EVENTS_MAX events, all or none; those without free text and those that were reduced before are left out. To be run in a
 * transaction. An archived session keeps them.
 */
export const forgetEvents = Effect.fnUntraced(function* (session_id: SessionId, revs: ReadonlyArray<Rev>) {
  const sql = yield* SqlClient.SqlClient
  const session = yield* lockSession(session_id)
  const archived = (yield* archiveOf(session_id)) !== undefined
  if (session === undefined || archived) return { reduced: 0, fixed: 0, archived } satisfies ForgottenEvents
  const { fixed, reductions } = yield* reductionsOf(session_id, revs.slice(0, FORGOTTEN_EVENTS_MAX))
  if (reductions.length === 0) return { reduced: 0, fixed, archived } satisfies ForgottenEvents
  const forgotten = reductions.map(({ new_digest, rev }) => ({ rev, new_digest: Sha256.make(new_digest) }))
  const now = new Date(yield* Clock.currentTimeMillis).toISOString()
  const link = chainEvent(headHash(session_id, session.head_hash), listing(session.last_rev + 1, now, forgotten))
  yield* insertEvents(session_id, [link], link.hash)
  if (session.status === "active")
    yield* sql`UPDATE choir_control.sessions SET epoch = epoch + 1 WHERE session_id = ${session_id}`
  const reduced = yield* Effect.orDie(forgetPayloads(session_id, reductions))
  return { reduced, fixed, archived } satisfies ForgottenEvents
})
