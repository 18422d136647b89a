/**
 * The rules by which rows are old enough to go, and the statements that remove them. Rows that are unacknowledged, pending or in doubt are never
 * due, nor is a message that its channel still has to take.
 */
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { RetentionConfig } from "#schema/Retention.ts"
import type { SessionId } from "#schema/Ids.ts"
import { consolesOf, OUTBOX_FAILED_TOLD_DAYS } from "#src/choird/queues/Outbox.ts"
import type { Kind } from "./growth.ts"
import { daysBefore } from "#src/shared/days.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Rows that one statement changes; the embedded database has one backend. */
export const PRUNE_ROWS_MAX = 500
/** The pause after each statement, in which others reach the database. */
export const PRUNE_PAUSE_MS = 20
/** How long ids outlive their texts, so that repeated deliveries are recognized: gateways try for a day at most. */
export const IDS_KEPT_DAYS = 30

/** Instants as the database writes them, so many days before `now_ms`. */
const daysBeforeSql = (now_ms: number) =>
  Effect.map(SqlClient.SqlClient, (sql) => (days: number) => sql`${daysBefore(now_ms, days)}::timestamptz`)

/** A session that is due, and the bytes of its file. */
interface DueSession {
  readonly session_id: SessionId
  readonly bytes: number
}

/** The retention of a configuration at one moment. */
export interface Moment {
  readonly config: Pick<Config, "agents" | "gateways" | "retention">
  readonly now_ms: number
}

/** The names of the agents that may start again. */
const startable = ({ agents }: Moment["config"]): ReadonlyArray<string> => Object.keys(agents)

/**
 * Sessions to archive. The session that an agent would continue stays, unless the agent left config.json, and so does one with an approval that is
 * not settled.
 */
export const dueForArchive = Effect.fnUntraced(function* ({ config, now_ms }: Moment, limit: number) {
  const sql = yield* SqlClient.SqlClient
  const { sessions_days } = config.retention
  if (sessions_days === null) return []
  const before = yield* daysBeforeSql(now_ms)
  return yield* sql<DueSession>`SELECT s.session_id, 0 AS bytes FROM choir_control.sessions AS s
    WHERE s.status <> 'active' AND s.archive IS NULL AND s.ended_at < ${before(sessions_days)}
      AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a WHERE a.last_session_id = s.session_id
        AND a.agent_id = ANY(${startable(config)}::text[]))
      AND NOT EXISTS (SELECT 1 FROM choir_control.pending_approvals AS p WHERE p.session_id = s.session_id
        AND (p.status IN ('pending', 'executing') OR p.status = 'approved' AND p.request_type <> 'confirm_tool'))
    ORDER BY s.ended_at LIMIT ${limit}`
})

/** Archives that are too old, and the oldest of those that together take too much room. */
export const dueForDeletion = Effect.fnUntraced(function* (
  { archives_days, archives_mb }: RetentionConfig,
  now_ms: number,
  limit: number
) {
  const sql = yield* SqlClient.SqlClient
  if (archives_days === null && archives_mb === null) return []
  const before = yield* daysBeforeSql(now_ms)
  const old = archives_days === null ? sql`false` : sql`ended_at < ${before(archives_days)}`
  const large = archives_mb === null ? sql`false` : sql`total > ${String(archives_mb * MIB)}::text::bigint`
  return yield* sql<DueSession>`SELECT session_id, bytes FROM (
      SELECT session_id, ended_at, (archive ->> 'bytes')::float8 AS bytes,
        sum((archive ->> 'bytes')::bigint) OVER (ORDER BY ended_at DESC, session_id DESC) AS total
      FROM choir_control.sessions WHERE archive IS NOT NULL AND status <> 'active'
    ) AS archived WHERE ${old} OR ${large} ORDER BY ended_at LIMIT ${limit}`
})

/** Audit rows that are kept of each agent, and of each other kind of requester; the oldest go first. No owner's rows push out another's. */
export const AUDIT_AGENT_ROWS_MAX = 10_000
const AUDIT_ROWS_MAX = 200_000
/** Rows of deleted sessions that are kept; the oldest go first. An id has the time of its session in it, so that none is made twice. */
export const DELETED_SESSIONS_MAX = 10_000

/** The terms in which a rule is written. `before(days)` is the instant so many days ago. */
interface Looking {
  readonly sql: Statement.Constructor
  readonly config: Moment["config"]
  readonly retention: RetentionConfig
  readonly before: (days: number) => Statement.Fragment
}

/** Rows `t` of a table that are removed, or emptied of their texts. */
export interface Rule {
  readonly kind: Kind
  readonly table: string
  readonly due: (looking: Looking) => Statement.Fragment
  readonly empties?: string
}

/** The owner of an audit row, as `ownerOf` of logs/Audit.ts has it. */
const auditOwner = `CASE WHEN split_part(who, ':', 1) IN ('agent', 'choird')
  THEN split_part(who, ':', 1) || ' ' || coalesce(agent_id, session_id, '') ELSE split_part(who, ':', 1) END`

/**
 * Audit rows beyond those that their owner may have. Counting is cheap; only the rows of an owner that has too many are sorted, once for each
 * owner: not materialized, the planner sorts them again for each row of the table.
 */
const auditBeyond = (sql: Statement.Constructor) => {
  const owner = sql.literal(auditOwner)
  const owned = sql`SELECT id, ${owner} AS owner FROM choir_control.audit`
  return sql`WITH beyond AS MATERIALIZED (
      SELECT owner, (SELECT id FROM (${owned}) AS own WHERE own.owner = counted.owner
        ORDER BY id DESC OFFSET counted.rows_max LIMIT 1) AS newest_id
      FROM (SELECT owner, count(*) AS rows,
          CASE WHEN owner LIKE '% _%' THEN ${AUDIT_AGENT_ROWS_MAX}::int ELSE ${AUDIT_ROWS_MAX}::int END AS rows_max
        FROM (${owned}) AS each_row GROUP BY owner) AS counted
      WHERE rows > rows_max
    ) SELECT row.id FROM (${owned}) AS row JOIN beyond ON row.owner = beyond.owner AND row.id <= beyond.newest_id`
}

/** A settled row of the outbox: it was delivered, or given up so long ago that `status` no longer shows it. */
const settled = ({ before, sql }: Looking) =>
  sql`(t.delivered_at IS NOT NULL OR t.failed_at < ${before(OUTBOX_FAILED_TOLD_DAYS)})`

/** A row of the outbox that waits at a console. A bot's rows wait for their delivery, or until its channel gives them up. */
const unread = ({ config, sql }: Looking) =>
  sql`t.delivered_at IS NULL AND t.failed_at IS NULL AND t.gateway = ANY(${consolesOf(config)}::text[])`

/** A run that ended, or whose session ended without saying how. */
const endedRun = ({ before, retention, sql }: Looking) =>
  sql`t.started_at < ${before(retention.runs_days)} AND (t.ended_at IS NOT NULL OR NOT EXISTS (
      SELECT 1 FROM choir_control.sessions AS s WHERE s.session_id = t.session_id AND s.status = 'active'))`

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
    kind: "unread",
    table: "outbox",
    due: (looking) =>
      looking.retention.unread_days === null
        ? looking.sql`false`
        : looking.sql`${unread(looking)} AND t.created_at < ${looking.before(looking.retention.unread_days)}`
  },
  {
    // A repeated request is recognized by the row.
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
    kind: "grants",
    table: "grants",
    due: ({ before, retention, sql }) => sql`least(t.until, t.revoked_at) < ${before(retention.approvals_days)}`
  },
  {
    // A call without an outcome is in doubt, and stays known as such for as long as anybody could ask.
    kind: "call results",
    table: "call_results",
    due: ({ before, retention, sql }) => sql`t.created_at < ${before(retention.call_results_days)} AND NOT EXISTS (
        SELECT 1 FROM choir_control.sessions AS s WHERE s.session_id = t.session_id
          AND (t.response = 'null'::jsonb AND s.status <> 'closed'
            OR s.status <> 'active' AND s.ended_at >= ${before(retention.call_results_days)}))`
  },
  {
    // The session that an agent continues keeps its shortcut.
    kind: "snapshots",
    table: "session_snapshots",
    due: ({ before, config, retention, sql }) => sql`NOT EXISTS (SELECT 1 FROM choir_control.sessions AS s
        WHERE s.session_id = t.session_id AND (s.status = 'active' OR s.ended_at >= ${before(retention.snapshots_days)}))
      AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a WHERE a.last_session_id = t.session_id
        AND a.agent_id = ANY(${startable(config)}::text[]))`
  },
  { kind: "runs", table: "skill_runs", due: endedRun },
  { kind: "runs", table: "job_runs", due: endedRun },
  {
    // The newest time of a skill tells which ones passed since.
    kind: "runs",
    table: "schedule_slots",
    due: ({ before, retention, sql }) => sql`t.created_at < ${before(retention.runs_days)}
      AND t.state NOT IN ('claimed', 'ordered') AND EXISTS (SELECT 1 FROM choir_control.schedule_slots AS newer
        WHERE newer.agent_id = t.agent_id AND newer.skill = t.skill AND newer.slot > t.slot)`
  },
  {
    // The newest plan of an agent keeps its number from being given again: buttons of old messages name it.
    kind: "plans",
    table: "plans",
    due: ({ before, retention, sql }) =>
      sql`t.state IN ('ended', 'removed') AND t.changed_at < ${before(retention.runs_days)}
        AND EXISTS (SELECT 1 FROM choir_control.plans AS newer
          WHERE newer.agent_id = t.agent_id AND newer.plan_id > t.plan_id)`
  },
  {
    // The newest time of a plan says how it went last.
    kind: "plans",
    table: "plan_slots",
    due: ({ before, retention, sql }) => sql`t.created_at < ${before(retention.runs_days)}
      AND EXISTS (SELECT 1 FROM choir_control.plan_slots AS newer
        WHERE newer.agent_id = t.agent_id AND newer.plan_id = t.plan_id AND newer.slot > t.slot)`
  },
  {
    kind: "embedding costs",
    table: "embedding_costs",
    due: ({ before, retention, sql }) => sql`t.day < (${before(retention.runs_days)} AT TIME ZONE 'UTC')::date`
  },
  {
    // While an agent's newest session is known as deleted, no earlier one is resumed in its place.
    kind: "deleted sessions",
    table: "deleted_sessions",
    due: ({
      sql
    }) => sql`t.cleared AND t.session_id NOT IN (SELECT d.session_id FROM choir_control.deleted_sessions AS d
        ORDER BY d.deleted_at DESC, d.session_id DESC LIMIT ${DELETED_SESSIONS_MAX})
      AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a WHERE a.last_session_id = t.session_id)`
  },
  {
    kind: "agents",
    table: "agents",
    due: ({ config, sql }) => sql`NOT (t.agent_id = ANY(${startable(config)}::text[]))
      AND NOT EXISTS (SELECT 1 FROM choir_control.sessions AS s WHERE s.agent_id = t.agent_id)`
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
    due: ({ before, retention, sql }) => sql`(t.at < ${before(retention.audit_days)} OR t.id IN (${auditBeyond(sql)}))`
  }
]

const dueRows = Effect.fnUntraced(function* ({ due, table }: Rule, { config, now_ms }: Moment) {
  const sql = yield* SqlClient.SqlClient
  const { retention } = config
  const looking = { sql, config, retention, before: yield* daysBeforeSql(now_ms) }
  return { table: sql(`choir_control.${table}`), due: due(looking) }
})

/** The number of rows that a rule would remove or empty. */
export const countDue = Effect.fnUntraced(function* (rule: Rule, moment: Moment) {
  const sql = yield* SqlClient.SqlClient
  const { due, table } = yield* dueRows(rule, moment)
  const [row] = yield* sql<{
    readonly count: number
  }>`SELECT count(*)::int AS count FROM ${table} AS t WHERE ${due}`
  return row?.count ?? 0
})

/** Applies a rule until nothing is due, or for `steps_max` statements. */
export const removeDue = Effect.fnUntraced(function* (rule: Rule, moment: Moment, steps_max: number) {
  const sql = yield* SqlClient.SqlClient
  const { due, table } = yield* dueRows(rule, moment)
  const found = sql`ctid = ANY(ARRAY(SELECT t.ctid FROM ${table} AS t WHERE ${due} LIMIT ${PRUNE_ROWS_MAX}))`
  let removed = 0
  for (let steps = 0; steps < steps_max; steps += 1) {
    const rows = yield* rule.empties === undefined
      ? sql`DELETE FROM ${table} WHERE ${found} RETURNING 1`
      : sql`UPDATE ${table} SET ${sql.literal(rule.empties)} WHERE ${found} RETURNING 1`
    removed += rows.length
    if (rows.length < PRUNE_ROWS_MAX) break
    yield* Effect.sleep(PRUNE_PAUSE_MS)
  }
  return removed
})
