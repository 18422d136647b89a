/** How far the chunks of a session's memory are, and jobs for sessions that ended before there were any. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Sessions of an agent that get their memory after an upgrade, the newest. */
const SESSIONS_CAUGHT_UP_MAX = 30

const STATEMENTS = [
  // The tier is that of the session's newest chunks; `summary` where only a summary is left.
  `ALTER TABLE choir_control.sessions ADD COLUMN memory_state jsonb,
    ADD COLUMN memory_tier text CHECK (memory_tier IN ('mid_term', 'long_term', 'summary'))`,
  `INSERT INTO choir_control.memory_jobs (agent_id, kind, session_id)
    SELECT agent_id, 'chunk', session_id FROM (
      SELECT agent_id, session_id, row_number() OVER (PARTITION BY agent_id ORDER BY started_at DESC, session_id DESC) AS place
      FROM choir_control.sessions WHERE status <> 'active' AND archive IS NULL AND last_rev > 0
    ) AS ended WHERE place <= ${SESSIONS_CAUGHT_UP_MAX}
    ON CONFLICT DO NOTHING`
]

export const sessionMemory = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
