/** The chat of a message that its channel took: a tap or a reply names both, and a number alone is another message in another chat. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.outbox ADD COLUMN sent_chat text`,
  `CREATE INDEX outbox_of_approval ON choir_control.outbox (sent_chat, sent_id)
    WHERE sent_chat IS NOT NULL AND starts_with(source_id, 'approval/')`
]

export const sentChats = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
