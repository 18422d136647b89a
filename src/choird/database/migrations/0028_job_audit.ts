/** The ends of jobs that have their audit rows, and the ends that have none yet. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.job_runs ADD COLUMN audited boolean NOT NULL DEFAULT false`,
  `CREATE INDEX job_runs_unaudited ON choir_control.job_runs (ended_at)
    WHERE NOT audited AND outcome IS NOT NULL AND (orphan OR outcome <> 'completed')`
]

export const jobAudit = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
