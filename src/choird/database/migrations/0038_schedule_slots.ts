/** The times at which schedules begin skills, one row for each that was claimed or skipped, and one for the instant at which a schedule came. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.schedule_slots (
    agent_id text NOT NULL,
    skill text NOT NULL,
    slot timestamptz NOT NULL,
    schedule text NOT NULL,
    state text NOT NULL CHECK (state IN ('passed', 'claimed', 'ordered', 'started', 'refused', 'skipped')),
    session_id text,
    missed integer NOT NULL DEFAULT 0,
    reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, skill, slot)
  )`,
  `CREATE INDEX schedule_slots_open ON choir_control.schedule_slots (agent_id) WHERE state IN ('claimed', 'ordered')`
]

export const scheduleSlots = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
