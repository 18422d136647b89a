/** Columns for what choird found out about a proposal, what it shows a person, and how far its execution got (D16, D17). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.pending_approvals
    ADD COLUMN facts jsonb,
    ADD COLUMN shown text,
    ADD COLUMN step text,
    ADD COLUMN job jsonb`,
  `CREATE INDEX pending_approvals_to_execute ON choir_control.pending_approvals (id)
    WHERE request_type <> 'confirm_tool' AND status IN ('approved', 'executing')`
]

export const proposals = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
