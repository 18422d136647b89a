/** How far the chunks of a session go while it runs: what left its window, and all of it once it was idle or ended. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  "ALTER TABLE choir_control.sessions ADD COLUMN memory_until integer NOT NULL DEFAULT 0",
  `UPDATE choir_control.sessions SET memory_until =
    CASE WHEN status = 'active' THEN coalesce((memory_state ->> 'rev')::int, 0) ELSE last_rev END`
]

export const memoryUntil = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
