/** The kind of a skill when it ran, the verdict on its result, and the jobs that wait to start. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.skill_runs
    ADD COLUMN version text,
    ADD COLUMN execution_class text CHECK (execution_class IN ('deterministic', 'probabilistic', 'tool')),
    ADD COLUMN tier text CHECK (tier IN ('pm', 'task', 'execution', 'audit', 'infrastructure', 'integration')),
    ADD COLUMN verdict text CHECK (verdict IN ('passed', 'failed'))`,
  `ALTER TABLE choir_control.job_runs
    ADD COLUMN pending boolean NOT NULL DEFAULT false,
    ADD COLUMN requested_at timestamptz,
    ADD COLUMN worked_at timestamptz`
]

export const runContracts = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
