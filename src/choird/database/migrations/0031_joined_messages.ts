/** Messages of people that are held until the rest of them has come, and those that became a part of an earlier one. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.inbox ADD COLUMN held_until timestamptz, ADD COLUMN joining jsonb, ADD COLUMN joined_to bigint`,
  `CREATE INDEX inbox_held ON choir_control.inbox (held_until) WHERE held_until IS NOT NULL`
]

export const joinedMessages = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
