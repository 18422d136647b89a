/** Where the events of an archived session are, what is left of a deleted one, and indexes by which old rows are found. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  // `cleared` says that no event of it is left in the database.
  `ALTER TABLE choir_control.sessions ADD COLUMN archive jsonb`,
  `CREATE INDEX sessions_ended ON choir_control.sessions (ended_at) WHERE status <> 'active'`,
  `CREATE INDEX sessions_archived ON choir_control.sessions (ended_at) WHERE archive IS NOT NULL`,
  `CREATE TABLE choir_control.deleted_sessions (
    session_id text PRIMARY KEY,
    agent_id text NOT NULL,
    started_at timestamptz NOT NULL,
    last_rev int NOT NULL,
    head_hash bytea,
    archive jsonb,
    who text NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    cleared boolean NOT NULL DEFAULT false
  )`,
  `CREATE INDEX deleted_sessions_left ON choir_control.deleted_sessions (session_id) WHERE NOT cleared`,
  `CREATE INDEX inbox_texts ON choir_control.inbox (created_at) WHERE acked_rev IS NOT NULL AND text <> ''`,
  `CREATE INDEX inbox_by_age ON choir_control.inbox (created_at) WHERE acked_rev IS NOT NULL`,
  `CREATE INDEX outbox_texts ON choir_control.outbox (created_at) WHERE delivered_at IS NOT NULL AND text <> ''`,
  `CREATE INDEX outbox_by_age ON choir_control.outbox (created_at) WHERE delivered_at IS NOT NULL`,
  `CREATE INDEX signals_by_age ON choir_control.signals (created_at) WHERE acked_rev IS NOT NULL`,
  `CREATE INDEX call_results_by_age ON choir_control.call_results (created_at)`,
  `CREATE INDEX pending_approvals_by_age ON choir_control.pending_approvals (resolved_at) WHERE resolved_at IS NOT NULL`
]

export const retention = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
