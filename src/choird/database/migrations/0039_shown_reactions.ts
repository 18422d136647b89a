/** Whether a message is answered, and whether the bot's reaction may be on it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.inbox ADD COLUMN answered boolean NOT NULL DEFAULT false, ADD COLUMN reacted boolean NOT NULL DEFAULT false`,
  `CREATE INDEX inbox_reacted ON choir_control.inbox (dm, inbox_id) WHERE reacted`
]

export const shownReactions = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
