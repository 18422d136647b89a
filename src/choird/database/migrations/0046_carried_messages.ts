/** The message that a session which reached a limit leaves to the next one, and the mark of a session that is continued. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  "ALTER TABLE choir_control.inbox ADD COLUMN carried boolean NOT NULL DEFAULT false",
  "ALTER TABLE choir_control.sessions ADD COLUMN carries_on jsonb"
]

export const carriedMessages = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
