/** Which ended sessions are old enough to be archived, and which archives to be deleted; the oldest first. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { RetentionConfig } from "#schema/Config.ts"
import type { SessionId } from "#schema/Ids.ts"
import { daysBefore } from "./pruneRows.ts"

const MIB = 1024 ** 2

/** A session that is due, and the bytes of its file. */
export interface DueSession {
  readonly session_id: SessionId
  readonly bytes: number
}

/** The session that an agent would go on in stays, and one with an approval that is not settled. */
export const dueForArchive = (
  sql: SqlClient.SqlClient,
  { sessions_days }: RetentionConfig,
  now_ms: number,
  limit: number
) =>
  sessions_days === null
    ? Effect.succeed([])
    : sql<DueSession>`SELECT s.session_id, 0 AS bytes FROM choir_control.sessions AS s
        WHERE s.status <> 'active' AND s.archive IS NULL AND s.ended_at < ${daysBefore(sql, now_ms)(sessions_days)}
          AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a WHERE a.last_session_id = s.session_id)
          AND NOT EXISTS (SELECT 1 FROM choir_control.pending_approvals AS p WHERE p.session_id = s.session_id
            AND (p.status IN ('pending', 'executing') OR p.status = 'approved' AND p.request_type <> 'confirm_tool'))
        ORDER BY s.ended_at LIMIT ${limit}`

/** Archives that are too old, and the oldest of those that together take too much room. */
export const dueForDeletion = (
  sql: SqlClient.SqlClient,
  { archives_days, archives_mb }: RetentionConfig,
  now_ms: number,
  limit: number
) => {
  const old = archives_days === null ? sql`false` : sql`ended_at < ${daysBefore(sql, now_ms)(archives_days)}`
  const large = archives_mb === null ? sql`false` : sql`total > ${String(archives_mb * MIB)}::text::bigint`
  return archives_days === null && archives_mb === null
    ? Effect.succeed([])
    : sql<DueSession>`SELECT session_id, bytes FROM (
        SELECT session_id, ended_at, (archive ->> 'bytes')::int AS bytes,
          sum((archive ->> 'bytes')::bigint) OVER (ORDER BY ended_at DESC, session_id DESC) AS total
        FROM choir_control.sessions WHERE archive IS NOT NULL AND status <> 'active'
      ) AS archived WHERE ${old} OR ${large} ORDER BY ended_at LIMIT ${limit}`
}
