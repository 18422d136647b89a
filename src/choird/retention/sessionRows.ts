/** The removal of the rows of sessions that were archived or deleted, in statements of a bounded size. */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { clearSessionMemory } from "#src/choird/memory/sessionDocuments.ts"
import { archivePath } from "#src/choird/sessions/archivedLog.ts"
import { homeBackupRuns } from "#src/shared/files/homeLocks.ts"
import { removeArchive } from "./archiveFile.ts"
import { PRUNE_PAUSE_MS, PRUNE_ROWS_MAX } from "./rules.ts"

/** Events that one statement removes. */
const EVENTS_REMOVED_MAX = 500

const pause = Effect.sleep(PRUNE_PAUSE_MS)

const removeAll = Effect.fnUntraced(function* (table: string, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(`choir_control.${table}`)} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${sql(`choir_control.${table}`)} WHERE session_id = ${session_id} LIMIT ${PRUNE_ROWS_MAX}))
    RETURNING 1`.pipe(Effect.tap(pause), Effect.repeat({ while: (rows) => rows.length === PRUNE_ROWS_MAX }))
})

const clear = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev IN (
      SELECT rev FROM choir_control.session_events WHERE session_id = ${session_id}
      ORDER BY rev DESC LIMIT ${EVENTS_REMOVED_MAX}) RETURNING rev`.pipe(
    Effect.tap(pause),
    Effect.repeat({ while: (rows) => rows.length >= EVENTS_REMOVED_MAX })
  )
  for (const table of ["session_snapshots", "signals", "call_results"]) yield* removeAll(table, session_id)
})

/** Removes the remaining rows of an archived session. */
export const clearArchived = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* clear(session_id)
  yield* sql`UPDATE choir_control.sessions SET archive = archive || '{"cleared": true}' WHERE session_id = ${session_id}`
})

/**
 * Removes the rest of a deleted session, and its memory. Texts that were acknowledged, delivered or given up are the session's; the others still have
 * somewhere to go. The file stays while a backup of the home runs, which may have copied the session's row before it was deleted; the next
 * look removes it.
 */
export const clearDeleted = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const { home } = yield* ConfigStore
  yield* clear(session_id)
  for (const table of ["pending_approvals", "skill_runs", "job_runs"]) yield* removeAll(table, session_id)
  yield* sql`UPDATE choir_control.inbox SET text = '', attachments = '[]'
    WHERE session_id = ${session_id} AND acked_rev IS NOT NULL AND text <> ''`
  yield* sql`UPDATE choir_control.outbox SET text = ''
    WHERE session_id = ${session_id} AND (delivered_at IS NOT NULL OR failed_at IS NOT NULL) AND text <> ''`
  const [row] = yield* sql<{ readonly agent_id: AgentId }>`SELECT agent_id FROM choir_control.deleted_sessions
    WHERE session_id = ${session_id}`
  if (row !== undefined) {
    yield* clearSessionMemory(row.agent_id, session_id, pause)
    const path = archivePath(home, { agent_id: row.agent_id, session_id })
    if (existsSync(path) && (yield* homeBackupRuns(home)))
      return yield* Effect.logInfo(`${path} is deleted after the backup that is running`)
    yield* removeArchive(path)
  }
  yield* sql`UPDATE choir_control.deleted_sessions SET cleared = true WHERE session_id = ${session_id}`
})

/** Clears the sessions that an earlier life of choird did not finish; answers how many. */
export const clearLeftovers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const archived = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
    WHERE archive IS NOT NULL AND archive -> 'cleared' = 'false' LIMIT ${PRUNE_ROWS_MAX}`
  for (const { session_id } of archived) yield* clearArchived(session_id)
  const gone = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.deleted_sessions
    WHERE NOT cleared LIMIT ${PRUNE_ROWS_MAX}`
  for (const { session_id } of gone) yield* clearDeleted(session_id)
  return archived.length + gone.length
})
