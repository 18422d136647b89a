/** Sessions whose log a later Choir continued: this one keeps and proves their events, and does not run them (D53). */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { EVENT_TYPES, EVENT_VERSION } from "#schema/Event.ts"
import { Rev, SessionId } from "#schema/Ids.ts"
import { VERSION } from "#src/shared/program/version.ts"
import type { NewerEvent } from "#src/shared/events/eventRow.ts"
import { newestSnapshot } from "./snapshots.ts"
import { replayLog, replayStart, storedLog } from "./storedEvents.ts"

export class NewerEvents extends Schema.TaggedError<NewerEvents>()("NewerEvents", {
  session_id: SessionId,
  /** The first event that is not known here. */
  rev: Rev,
  v: Schema.Finite,
  event_type: Schema.String,
  /** The choird that last began the session; null where none noted it. */
  choird_version: Schema.NullOr(Schema.String)
}) {
  override get message() {
    const { choird_version, event_type, rev, session_id, v } = this
    const writer = choird_version === null ? "a later Choir wrote them" : `choird ${choird_version} ran it last`
    return `the session ${session_id} holds events that this choird does not know, from revision ${rev} on (${event_type}, version ${v}); ${writer}`
  }
  get hint() {
    const writer = this.choird_version === null ? "the later choird" : `choird ${this.choird_version} or later`
    return `run ${writer}; choirctl agent start AGENT --fresh begins another session and leaves this one as it is`
  }
}

/** The refusal of a session whose first event that is not known here is this one. */
export const newerFrom = Effect.fnUntraced(function* (session_id: SessionId, newer: NewerEvent) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly choird_version: string | null }>`SELECT choird_version FROM choir_control.sessions
    WHERE session_id = ${session_id}`
  // Where this choird itself ran it, only its agent was from a later version of Choir.
  const choird_version = row === undefined || row.choird_version === VERSION ? null : row.choird_version
  return new NewerEvents({ session_id, ...newer, choird_version })
})

/** Whether the choird that ran a session last is a later one than this. */
const isLater = (choird_version: string | null): boolean =>
  choird_version !== null && choird_version.localeCompare(VERSION, "en", { numeric: true }) > 0

/**
 * The first event up to a revision whose payload is not known here. A snapshot covers the events before it, unless a later choird
 * may have written it.
 */
const newerPayload = Effect.fnUntraced(function* (session_id: SessionId, until: number) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<{ readonly last_rev: number; readonly choird_version: string | null }>`SELECT last_rev,
      choird_version FROM choir_control.sessions WHERE session_id = ${session_id}`
  if (session === undefined) return undefined
  const last = Math.min(until, session.last_rev)
  const snapshot = isLater(session.choird_version) ? undefined : yield* newestSnapshot(session_id, last)
  const { problem } = yield* replayLog(storedLog(session_id, last), snapshot ?? replayStart(session_id))
  return problem?.newer
})

/** The first stored event of a session that is not known here. A row from before migration 0009 has no version; it is version 1. */
export const newerEvents = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<NewerEvent>`SELECT rev, coalesce(v, 1) AS v, event_type
    FROM choir_control.session_events
    WHERE session_id = ${session_id} AND (v > ${EVENT_VERSION} OR event_type <> ALL(${[...EVENT_TYPES]}::text[]))
    ORDER BY rev LIMIT 1`
  const newer = (yield* newerPayload(session_id, row === undefined ? Infinity : row.rev - 1)) ?? row
  return newer === undefined ? undefined : yield* newerFrom(session_id, newer)
})
