/** Sessions that leave the database: into a file of the home, or permanently. A later life of choird finishes what this one began. */
import { Clock, Context, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { ArchivedSession, DeletedSession } from "#schema/SystemApi.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { type Archive, archivePath } from "#src/choird/sessions/archivedLog.ts"
import { headHash } from "#src/choird/sessions/readLog.ts"
import { lockSession, readPage } from "#src/choird/sessions/storedEvents.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { removeArchive, writeArchive } from "./archiveFile.ts"
import { clearArchived, clearDeleted, clearLeftovers } from "./sessionRows.ts"

/** A session that stays as it is, with the reason. `kind` is also the API's error type. */
export class SessionKept extends Schema.TaggedError<SessionKept>()("SessionKept", {
  kind: Schema.Literals([
    "UNKNOWN_SESSION",
    "SESSION_RUNNING",
    "SESSION_PENDING",
    "SESSION_ARCHIVED",
    "SESSION_DELETED",
    "FILE"
  ]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

interface Row {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly status: SessionStatus
  readonly started_at: Date
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
  readonly archive: Archive | null
  /** Approvals that wait for a person, or whose execution has not ended. */
  readonly open: number
}

/** Archives and deletes ended sessions. */
export class SessionArchives extends Context.Service<
  SessionArchives,
  {
    /**
     * Moves an ended session's events into a compressed file of the home, where `events` and `verify` still read them. The session is
     * closed: its agent's next start begins another one.
     */
    archive(session_id: SessionId, who: string): Effect.Effect<ArchivedSession, SessionKept | DatabaseAway>
    /**
     * Removes an ended session and its texts. A row with its id, last revision and last hash stays until DELETED_SESSIONS_MAX newer ones were deleted, and
     * the id is not used again.
     */
    remove(session_id: SessionId, who: string): Effect.Effect<DeletedSession, SessionKept | DatabaseAway>
    /** The remaining row of a deleted session. */
    deleted(session_id: SessionId): Effect.Effect<Option.Option<DeletedSession>, DatabaseAway>
    /** Sessions whose removal from the tables was cut short. */
    readonly finish: Effect.Effect<number, DatabaseAway>
  }
>()("choir/choird/SessionArchives") {
  static readonly layer = Layer.effect(
    SessionArchives,
    Effect.suspend(() => make)
  )
}

const OPEN = `(SELECT count(*)::int FROM choir_control.pending_approvals AS p WHERE p.session_id = s.session_id
  AND (p.status IN ('pending', 'executing') OR p.status = 'approved' AND p.request_type <> 'confirm_tool'))`

const make = Effect.gen(function* () {
  const context = yield* Effect.context<Audit | ConfigStore | SqlClient.SqlClient>()
  const onDatabase = yield* useDatabase
  const one = yield* Semaphore.make(1)
  const use = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.provideContext(onDatabase(work), context)
  return SessionArchives.of({
    archive: Effect.fn("SessionArchives.archive")(archive, use, one.withPermit),
    remove: Effect.fn("SessionArchives.remove")(remove, use, one.withPermit),
    deleted: Effect.fn("SessionArchives.deleted")(findDeleted, use),
    finish: one.withPermit(use(clearLeftovers))
  })
})

const findDeleted = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<
    Omit<DeletedSession, "head" | "deleted_at"> & { head_hash: Uint8Array | null; deleted_at: Date }
  >`
    SELECT session_id, agent_id, last_rev, head_hash, deleted_at FROM choir_control.deleted_sessions
    WHERE session_id = ${session_id}`
  if (row === undefined) return Option.none<DeletedSession>()
  const { agent_id, deleted_at, head_hash, last_rev } = row
  const head = hex(headHash(session_id, head_hash))
  return Option.some({ session_id, agent_id, last_rev, head, deleted_at: deleted_at.toISOString() })
})

const unknown = Effect.fnUntraced(function* (session_id: SessionId) {
  const gone = Option.getOrUndefined(yield* findDeleted(session_id))
  return gone === undefined
    ? new SessionKept({
        kind: "UNKNOWN_SESSION",
        reason: `there is no session ${session_id}`,
        hint: "choirctl session list"
      })
    : new SessionKept({
        kind: "SESSION_DELETED",
        reason: deletedText(gone),
        hint: "choirctl session list"
      })
})

/** A session that may leave: it has ended, and none of its approvals is open. */
const findEnded = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`SELECT session_id, agent_id, status, started_at, last_rev, head_hash, archive,
      ${sql.literal(OPEN)} AS open FROM choir_control.sessions AS s WHERE session_id = ${session_id}`
  if (row === undefined) return yield* yield* unknown(session_id)
  if (row.status === "active")
    return yield* new SessionKept({
      kind: "SESSION_RUNNING",
      reason: `the session ${session_id} of ${row.agent_id} is running`,
      hint: `choirctl agent stop ${row.agent_id}`
    })
  if (row.open > 0)
    return yield* new SessionKept({
      kind: "SESSION_PENDING",
      reason: `${row.open} approvals of the session ${session_id} are not settled`,
      hint: `choirctl approval list ${row.agent_id}`
    })
  return row
})

/**
 * Makes the file the place of a session's events, unless they have changed since it was written: the session continued, or a payload was
 * reduced in the meantime, whose text must not stay in the file.
 */
const close = Effect.fnUntraced(function* (
  entry: Archive,
  { last_rev, reduced }: { readonly last_rev: number; readonly reduced: number }
) {
  const sql = yield* SqlClient.SqlClient
  yield* lockSession(entry.session_id)
  const rows = yield* sql`UPDATE choir_control.sessions SET archive = ${canonicalJson(entry)}::jsonb, status = 'closed'
    WHERE session_id = ${entry.session_id} AND status <> 'active' AND archive IS NULL AND last_rev = ${last_rev}
      AND ${reduced} = (SELECT count(payload_digest) FROM choir_control.session_events
        WHERE session_id = ${entry.session_id})
    RETURNING 1`
  return rows.length > 0
}, inTransaction)

const record = Effect.fnUntraced(function* (
  action: "session.archive" | "session.delete",
  who: string,
  { agent_id, head, last_rev, session_id }: Pick<DeletedSession, "agent_id" | "head" | "last_rev" | "session_id">
) {
  if (who === "operator")
    yield* (yield* Audit).record({ who, action, session_id, agent_id, detail: { last_rev, head } })
})

const archive = Effect.fnUntraced(function* (session_id: SessionId, who: string) {
  const { home } = yield* ConfigStore
  const { agent_id, archive: earlier, head_hash, last_rev } = yield* findEnded(session_id)
  const path = archivePath(home, { agent_id, session_id })
  if (earlier !== null)
    return yield* new SessionKept({
      kind: "SESSION_ARCHIVED",
      reason: `the session ${session_id} is already archived, in ${path}`,
      hint: `choirctl session verify ${session_id}`
    })
  const written = yield* writeArchive(path, (after) => readPage(session_id, after + 1)).pipe(
    Effect.catchTag(
      "ArchiveNotWritten",
      ({ message }) => new SessionKept({ kind: "FILE", reason: message, hint: "choirctl status" })
    )
  )
  const { bytes, sha256 } = written
  const archived_at = new Date(yield* Clock.currentTimeMillis).toISOString()
  const entry: Archive = { agent_id, session_id, last_rev, bytes, sha256, archived_at, cleared: false }
  if (!(yield* close(entry, written))) {
    yield* removeArchive(path)
    yield* findEnded(session_id)
    return yield* new SessionKept({
      kind: "FILE",
      reason: `the events of the session ${session_id} changed while they were written, or do not end at its revision ${last_rev}. They stay where they are`,
      hint: `choirctl session verify ${session_id}`
    })
  }
  yield* clearArchived(session_id)
  const archived = { session_id, agent_id, last_rev, head: hex(headHash(session_id, head_hash)) }
  yield* record("session.archive", who, archived)
  return { ...archived, path, bytes }
})

/** Replaces the row of a session by the one that stays of it. */
const dropRow = Effect.fnUntraced(function* (session_id: SessionId, who: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT 1 FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`
  yield* findEnded(session_id)
  yield* sql`INSERT INTO choir_control.deleted_sessions (session_id, agent_id, started_at, last_rev, head_hash, archive, who)
    SELECT session_id, agent_id, started_at, last_rev, head_hash, archive, ${who}
    FROM choir_control.sessions WHERE session_id = ${session_id}`
  yield* sql`DELETE FROM choir_control.sessions WHERE session_id = ${session_id}`
}, inTransaction)

const remove = Effect.fnUntraced(function* (session_id: SessionId, who: string) {
  yield* findEnded(session_id)
  yield* dropRow(session_id, who)
  yield* clearDeleted(session_id)
  const gone = Option.getOrThrow(yield* findDeleted(session_id))
  yield* record("session.delete", who, gone)
  return gone
})

export const deletedText = ({ deleted_at, head, last_rev, session_id }: DeletedSession): string =>
  `the session ${session_id} was deleted on ${deleted_at}; its last revision was ${last_rev} with the hash ${head}`
