/** The action that made each version of the configuration, and who asked for it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.config_versions ADD COLUMN action text NOT NULL DEFAULT 'start'`,
  `ALTER TABLE choir_control.config_versions ADD COLUMN who text NOT NULL DEFAULT 'choird'`
]

export const configHistory = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
