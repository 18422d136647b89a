/** The ids of groups that became supergroups: the one of config.json, and the one that the chat has now. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.chat_settings ADD COLUMN moved_from text, ADD COLUMN moved_to text,
    ALTER COLUMN rich SET DEFAULT false`
]

export const movedChats = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
