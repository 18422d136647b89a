/** Sessions that leave the database: into a file of the home, or for good. What was begun is finished by a later life of choird. */
import { existsSync } from "node:fs"
import { Clock, Context, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import type { ArchivedSession, DeletedSession } from "#schema/SystemApi.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { type Archive, archivePath } from "#src/choird/sessions/archivedLog.ts"
import { headHash } from "#src/choird/sessions/readLog.ts"
import { lockSession, readPage } from "#src/choird/sessions/storedEvents.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { homeBackupRuns } from "#src/shared/files/homeLocks.ts"
import { removeArchive, removeEvents, writeArchive } from "./archiveFile.ts"
import { EVENTS_REMOVED_MAX, PRUNE_PAUSE_MS, PRUNE_ROWS_MAX } from "./limits.ts"

/** Why a session stays as it is. `kind` is also the API's error type. */
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
    archive(session_id: SessionId, who: string): Effect.Effect<ArchivedSession, SessionKept>
    /**
     * Removes an ended session and its texts. A row with its id, last revision and last hash stays for good, and no session gets the id again.
     */
    remove(session_id: SessionId, who: string): Effect.Effect<DeletedSession, SessionKept>
    /** What is left of a session that was deleted. */
    deleted(session_id: SessionId): Effect.Effect<Option.Option<DeletedSession>>
    /** Sessions whose removal from the tables was cut short. */
    readonly finish: Effect.Effect<number>
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
  const sql = yield* SqlClient.SqlClient
  const audit = yield* Audit
  const { home } = yield* ConfigStore
  const one = yield* Semaphore.make(1)
  const pause = Effect.sleep(PRUNE_PAUSE_MS)

  const deleted = Effect.fnUntraced(function* (session_id: SessionId) {
    const [row] = yield* sql<
      Omit<DeletedSession, "head" | "deleted_at"> & { head_hash: Uint8Array | null; deleted_at: Date }
    >`
      SELECT session_id, agent_id, last_rev, head_hash, deleted_at FROM choir_control.deleted_sessions
      WHERE session_id = ${session_id}`
    if (row === undefined) return Option.none<DeletedSession>()
    const { agent_id, deleted_at, head_hash, last_rev } = row
    const head = hex(headHash(session_id, head_hash))
    return Option.some({ session_id, agent_id, last_rev, head, deleted_at: deleted_at.toISOString() })
  }, Effect.orDie)

  const unknown = Effect.fnUntraced(function* (session_id: SessionId) {
    const gone = Option.getOrUndefined(yield* deleted(session_id))
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

  const find = Effect.fnUntraced(function* (session_id: SessionId) {
    const [row] =
      yield* Effect.orDie(sql<Row>`SELECT session_id, agent_id, status, started_at, last_rev, head_hash, archive,
        ${sql.literal(OPEN)} AS open FROM choir_control.sessions AS s WHERE session_id = ${session_id}`)
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

  /** Some rows at a time, until none is left. */
  const removeAll = (table: string, session_id: SessionId) =>
    sql`DELETE FROM ${sql(`choir_control.${table}`)} WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM ${sql(`choir_control.${table}`)} WHERE session_id = ${session_id} LIMIT ${PRUNE_ROWS_MAX}))
      RETURNING 1`.pipe(Effect.tap(pause), Effect.repeat({ while: (rows) => rows.length === PRUNE_ROWS_MAX }))

  const clear = Effect.fnUntraced(function* (session_id: SessionId) {
    yield* removeEvents(sql, session_id).pipe(
      Effect.tap(pause),
      Effect.repeat({ while: (count) => count >= EVENTS_REMOVED_MAX })
    )
    for (const table of ["session_snapshots", "signals", "call_results"]) yield* removeAll(table, session_id)
  })

  const clearArchived = Effect.fnUntraced(function* (session_id: SessionId) {
    yield* clear(session_id)
    yield* sql`UPDATE choir_control.sessions SET archive = archive || '{"cleared": true}' WHERE session_id = ${session_id}`
  })

  /**
   * Texts that were acknowledged, and those that were delivered or given up, are the session's; the others still have somewhere to go. The
   * file stays while a backup of the home runs, which may have copied the session's row before it was deleted; the next look removes it.
   */
  const clearDeleted = Effect.fnUntraced(function* (session_id: SessionId) {
    yield* clear(session_id)
    yield* removeAll("pending_approvals", session_id)
    yield* sql`UPDATE choir_control.inbox SET text = '', attachments = '[]'
      WHERE session_id = ${session_id} AND acked_rev IS NOT NULL AND text <> ''`
    yield* sql`UPDATE choir_control.outbox SET text = ''
      WHERE session_id = ${session_id} AND (delivered_at IS NOT NULL OR failed_at IS NOT NULL) AND text <> ''`
    const [row] = yield* sql<{ readonly agent_id: AgentId }>`SELECT agent_id FROM choir_control.deleted_sessions
      WHERE session_id = ${session_id}`
    if (row !== undefined) {
      const path = archivePath(home, { agent_id: row.agent_id, session_id })
      if (existsSync(path) && (yield* homeBackupRuns(home)))
        return yield* Effect.logInfo(`${path} is deleted after the backup that is running`)
      yield* removeArchive(path)
    }
    yield* sql`UPDATE choir_control.deleted_sessions SET cleared = true WHERE session_id = ${session_id}`
  })

  /**
   * Makes the file the place of a session's events, unless they are no longer what it holds: the session went on, or a payload was
   * reduced meanwhile, whose text must not stay in the file.
   */
  const close = (entry: Archive, { last_rev, reduced }: { readonly last_rev: number; readonly reduced: number }) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* lockSession(sql, entry.session_id)
        return yield* sql`UPDATE choir_control.sessions SET archive = ${canonicalJson(entry)}::jsonb, status = 'closed'
          WHERE session_id = ${entry.session_id} AND status <> 'active' AND archive IS NULL AND last_rev = ${last_rev}
            AND ${reduced} = (SELECT count(payload_digest) FROM choir_control.session_events
              WHERE session_id = ${entry.session_id})
          RETURNING 1`
      })
    )

  const archive = Effect.fnUntraced(
    function* (session_id: SessionId, who: string) {
      const { agent_id, archive: earlier, head_hash, last_rev } = yield* find(session_id)
      const path = archivePath(home, { agent_id, session_id })
      if (earlier !== null)
        return yield* new SessionKept({
          kind: "SESSION_ARCHIVED",
          reason: `the session ${session_id} is archived already, in ${path}`,
          hint: `choirctl session verify ${session_id}`
        })
      const written = yield* Effect.mapError(
        writeArchive(path, (after) => Effect.orDie(readPage(sql, session_id, after + 1))),
        ({ message }) => new SessionKept({ kind: "FILE", reason: message, hint: "choirctl status" })
      )
      const { bytes, sha256 } = written
      const archived_at = new Date(yield* Clock.currentTimeMillis).toISOString()
      const entry: Archive = { agent_id, session_id, last_rev, bytes, sha256, archived_at, cleared: false }
      const rows = yield* close(entry, written)
      if (rows.length === 0) {
        yield* removeArchive(path)
        yield* find(session_id)
        return yield* new SessionKept({
          kind: "FILE",
          reason: `the events of the session ${session_id} changed while they were written, or do not end at its revision ${last_rev}. They stay where they are`,
          hint: `choirctl session verify ${session_id}`
        })
      }
      yield* clearArchived(session_id)
      const head = hex(headHash(session_id, head_hash))
      if (who === "operator")
        yield* audit.record({ who, action: "session.archive", session_id, agent_id, detail: { last_rev, head } })
      return { session_id, agent_id, last_rev, head, path, bytes }
    },
    Effect.catchTag("SqlError", Effect.die)
  )

  const remove = Effect.fnUntraced(
    function* (session_id: SessionId, who: string) {
      const { agent_id } = yield* find(session_id)
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT 1 FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`
          yield* find(session_id)
          yield* sql`INSERT INTO choir_control.deleted_sessions (session_id, agent_id, started_at, last_rev, head_hash, archive, who)
          SELECT session_id, agent_id, started_at, last_rev, head_hash, archive, ${who}
          FROM choir_control.sessions WHERE session_id = ${session_id}`
          yield* sql`DELETE FROM choir_control.sessions WHERE session_id = ${session_id}`
        })
      )
      yield* clearDeleted(session_id)
      const gone = Option.getOrThrow(yield* deleted(session_id))
      const { head, last_rev } = gone
      if (who === "operator")
        yield* audit.record({ who, action: "session.delete", session_id, agent_id, detail: { last_rev, head } })
      return gone
    },
    Effect.catchTag("SqlError", Effect.die)
  )

  const finish = Effect.gen(function* () {
    const archived = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
      WHERE archive IS NOT NULL AND archive -> 'cleared' = 'false' LIMIT ${PRUNE_ROWS_MAX}`
    for (const { session_id } of archived) yield* clearArchived(session_id)
    const gone = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.deleted_sessions
      WHERE NOT cleared LIMIT ${PRUNE_ROWS_MAX}`
    for (const { session_id } of gone) yield* clearDeleted(session_id)
    return archived.length + gone.length
  }).pipe(Effect.orDie, one.withPermit)

  return SessionArchives.of({
    archive: Effect.fn("SessionArchives.archive")((session_id, who) => one.withPermit(archive(session_id, who))),
    remove: Effect.fn("SessionArchives.remove")((session_id, who) => one.withPermit(remove(session_id, who))),
    deleted,
    finish
  })
})

export const deletedText = ({ deleted_at, head, last_rev, session_id }: DeletedSession): string =>
  `the session ${session_id} was deleted on ${deleted_at}; its last revision was ${last_rev} with the hash ${head}`
