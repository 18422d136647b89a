/** How much a session's log holds, so that one agent's history cannot fill the database. A closed session takes no more events. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.sessions ADD COLUMN log_bytes bigint NOT NULL DEFAULT 0`,
  `UPDATE choir_control.sessions AS s SET log_bytes = held.bytes
    FROM (SELECT session_id, sum(coalesce(bytes, octet_length(canonical))) AS bytes
      FROM choir_control.session_events GROUP BY session_id) AS held
    WHERE held.session_id = s.session_id AND s.status <> 'closed'`
]

export const logBytes = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
