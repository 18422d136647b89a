/** Whether a message holds somebody else's words, which taint the lane that reads them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.inbox ADD COLUMN forwarded boolean NOT NULL DEFAULT false`]

export const forwardedMessages = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
