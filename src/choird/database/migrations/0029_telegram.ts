/** The numbers and topics of messages in their chat, the parts of an answer that were sent, and what a chat chose. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.inbox ADD COLUMN message_id bigint, ADD COLUMN thread_id bigint`,
  `ALTER TABLE choir_control.outbox ADD COLUMN sent_parts integer NOT NULL DEFAULT 0`,
  `CREATE TABLE choir_control.chat_settings (dm text PRIMARY KEY, rich boolean NOT NULL)`
]

export const telegram = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
