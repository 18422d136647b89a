/** Columns for what an approval shows a person, who asked for it, when it expires and how it ended (D16). No earlier Choir wrote a row. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.pending_approvals
    ADD COLUMN call_id text NOT NULL,
    ADD COLUMN canonical text NOT NULL,
    ADD COLUMN payload_hash bytea NOT NULL,
    ADD COLUMN summary text NOT NULL,
    ADD COLUMN lane text NOT NULL,
    ADD COLUMN expires_at timestamptz NOT NULL,
    ADD COLUMN resolved_by text,
    ADD COLUMN reason text,
    ADD COLUMN outcome text`,
  `CREATE UNIQUE INDEX pending_approvals_by_call ON choir_control.pending_approvals (session_id, call_id)`,
  `CREATE INDEX pending_approvals_by_expiry ON choir_control.pending_approvals (expires_at) WHERE status = 'pending'`
]

export const approvals = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
