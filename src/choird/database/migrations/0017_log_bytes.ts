/** How much a session's log holds, so that one agent's history cannot fill the database. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.sessions ADD COLUMN log_bytes bigint NOT NULL DEFAULT 0`,
  // Only the newest session of an agent can take more events; the others are not read, since a migration has a minute.
  `UPDATE choir_control.sessions AS s SET log_bytes = (
      SELECT coalesce(sum(coalesce(bytes, octet_length(canonical))), 0)
      FROM choir_control.session_events AS e WHERE e.session_id = s.session_id)
    FROM choir_control.agents AS a WHERE a.last_session_id = s.session_id AND s.status <> 'closed'`
]

export const logBytes = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
