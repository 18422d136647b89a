/** The request that decided an approval: one that comes again, after a crash for example, decides nothing else. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.pending_approvals ADD COLUMN request_id text`,
  `CREATE UNIQUE INDEX pending_approvals_request ON choir_control.pending_approvals (request_id)
    WHERE request_id IS NOT NULL`
]

export const decisionRequests = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
