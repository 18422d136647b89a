/** Whether the people of a chat hear answers: never, always, or where they spoke themselves. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.chat_settings ADD COLUMN voice text NOT NULL DEFAULT 'off'`]

export const chatVoice = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
