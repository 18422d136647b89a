/** Whether a message to a person was written in sight of text from outside: a person who replies to it brings its words along. Not known of earlier messages. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  "ALTER TABLE choir_control.outbox ADD COLUMN labelled boolean",
  `CREATE INDEX outbox_as_sent ON choir_control.outbox (sent_chat, sent_id)
    WHERE sent_chat IS NOT NULL AND labelled IS NOT NULL`
]

export const labelledMessages = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
