/** The topics of a chat that belong to jobs. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.chat_settings ADD COLUMN topics jsonb NOT NULL DEFAULT '[]'`]

export const jobTopics = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
