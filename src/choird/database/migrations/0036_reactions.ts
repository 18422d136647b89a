/** Whether messages of a chat get reactions. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.chat_settings ADD COLUMN reactions boolean NOT NULL DEFAULT true`]

export const reactions = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
