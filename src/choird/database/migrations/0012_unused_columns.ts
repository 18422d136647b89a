/** Columns and a table that nothing reads: an operator who finds them would take them for the truth. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.agents DROP COLUMN config`,
  `ALTER TABLE choir_control.sessions DROP COLUMN lease_id`,
  `DROP TABLE choir_control.gateway_offsets`
]

export const unusedColumns = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
