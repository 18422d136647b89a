/** Which rows are old enough to go. A rule says what is due; nothing that is unacknowledged, waits for delivery, is pending or in doubt ever is. */
import type { SqlClient, Statement } from "effect/sql"
import type { RetentionConfig } from "#schema/Config.ts"
import type { Kind } from "./growth.ts"
import { IDS_KEPT_DAYS } from "./limits.ts"
import { OUTBOX_FAILED_TOLD_DAYS } from "#src/choird/queues/Outbox.ts"
import { Effect } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { daysBefore } from "./pruneRows.ts"

const MIB = 1024 ** 2

/** A session that is due, and the bytes of its file. */
interface DueSession {
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

/** Audit rows that are kept; the oldest go first. */
const AUDIT_ROWS_MAX = 200_000

/** What a rule may ask. `before(days)` is the instant so many days ago. */
interface Looking {
  readonly sql: SqlClient.SqlClient
  readonly retention: RetentionConfig
  readonly before: (days: number) => Statement.Fragment
}

/** Rows `t` of a table, and what becomes of them: they are removed, or emptied of their texts. */
export interface Rule {
  readonly kind: Kind
  readonly table: string
  readonly due: (looking: Looking) => Statement.Fragment
  readonly empties?: string
}

/** A row of the outbox that nobody waits for: it was delivered, or given up so long ago that `status` has stopped telling of it. */
const settled = ({ before, sql }: Looking) =>
  sql`(t.delivered_at IS NOT NULL OR t.failed_at < ${before(OUTBOX_FAILED_TOLD_DAYS)})`

export const RULES: ReadonlyArray<Rule> = [
  {
    kind: "messages",
    table: "inbox",
    empties: "text = '', attachments = '[]'",
    due: ({ before, retention, sql }) =>
      sql`t.acked_rev IS NOT NULL AND t.text <> '' AND t.created_at < ${before(retention.messages_days)}`
  },
  {
    kind: "message ids",
    table: "inbox",
    due: ({ before, retention, sql }) =>
      sql`t.acked_rev IS NOT NULL AND t.created_at < ${before(retention.messages_days + IDS_KEPT_DAYS)}`
  },
  {
    kind: "replies",
    table: "outbox",
    empties: "text = ''",
    due: (looking) =>
      looking.sql`${settled(looking)} AND t.text <> '' AND t.created_at < ${looking.before(looking.retention.messages_days)}`
  },
  {
    kind: "reply ids",
    table: "outbox",
    due: (looking) =>
      looking.sql`${settled(looking)} AND t.created_at < ${looking.before(looking.retention.messages_days + IDS_KEPT_DAYS)}`
  },
  {
    // The row is what a repeated request is known by.
    kind: "signals",
    table: "signals",
    due: ({ before, retention, sql }) =>
      sql`t.acked_rev IS NOT NULL AND t.created_at < ${before(Math.max(retention.messages_days, IDS_KEPT_DAYS))}`
  },
  {
    kind: "approvals",
    table: "pending_approvals",
    due: ({ before, retention, sql }) => sql`t.resolved_at < ${before(retention.approvals_days)}
      AND (t.status IN ('rejected', 'expired', 'done', 'failed') OR (t.status = 'approved' AND t.request_type = 'confirm_tool'))
      AND NOT EXISTS (SELECT 1 FROM choir_control.signals AS s WHERE s.session_id = t.session_id AND s.acked_rev IS NULL
        AND s.kind = 'ApprovalResolved' AND s.payload ->> 'approval_id' = t.id::text)`
  },
  {
    // A call without an outcome is in doubt. It is known as such for as long as anybody could ask.
    kind: "call results",
    table: "call_results",
    due: ({ before, retention, sql }) => sql`t.created_at < ${before(retention.call_results_days)} AND NOT EXISTS (
        SELECT 1 FROM choir_control.sessions AS s WHERE s.session_id = t.session_id
          AND (t.response = 'null'::jsonb AND s.status <> 'closed'
            OR s.status <> 'active' AND s.ended_at >= ${before(retention.call_results_days)}))`
  },
  {
    // The session that an agent goes on in keeps its shortcut.
    kind: "snapshots",
    table: "session_snapshots",
    due: ({ before, retention, sql }) => sql`NOT EXISTS (SELECT 1 FROM choir_control.sessions AS s
        WHERE s.session_id = t.session_id AND (s.status = 'active' OR s.ended_at >= ${before(retention.snapshots_days)}))
      AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a WHERE a.last_session_id = t.session_id)`
  },
  {
    kind: "config versions",
    table: "config_versions",
    due: ({ retention, sql }) =>
      sql`t.version <= (SELECT max(version) FROM choir_control.config_versions) - ${retention.config_versions}::int`
  },
  {
    kind: "audit",
    table: "audit",
    due: ({ before, retention, sql }) =>
      sql`(t.id <= (SELECT max(id) FROM choir_control.audit) - ${AUDIT_ROWS_MAX}::bigint OR t.at < ${before(retention.audit_days)})`
  }
]
