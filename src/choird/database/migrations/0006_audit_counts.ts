/** Equal refusals share a row: how many there were, and since when (R77). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.audit ADD COLUMN count int NOT NULL DEFAULT 1`,
  `ALTER TABLE choir_control.audit ADD COLUMN since timestamptz`
]

export const auditCounts = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
