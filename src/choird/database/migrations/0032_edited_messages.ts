/** Messages that a person edited: before the agent took them, and those that correct one which it had taken. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.inbox ADD COLUMN edited boolean NOT NULL DEFAULT false, ADD COLUMN taken_text text,
    ADD COLUMN corrects bigint, ADD COLUMN edits text[] NOT NULL DEFAULT '{}'`,
  `CREATE INDEX inbox_number ON choir_control.inbox (dm, message_id) WHERE message_id IS NOT NULL`,
  `CREATE INDEX inbox_corrects ON choir_control.inbox (corrects) WHERE corrects IS NOT NULL`,
  `CREATE INDEX inbox_edited ON choir_control.inbox (inbox_id) WHERE edited`
]

export const editedMessages = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
