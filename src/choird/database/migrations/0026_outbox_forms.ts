/** How a channel shows a message beside its text (buttons, a file, an edit of an earlier one), and the channel's own id of what it took. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.outbox ADD COLUMN form jsonb, ADD COLUMN sent_id text`]

export const outboxForms = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
