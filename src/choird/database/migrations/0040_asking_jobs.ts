/** Whether a job waits for the answer to its question. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [`ALTER TABLE choir_control.job_runs ADD COLUMN asks boolean NOT NULL DEFAULT false`]

export const askingJobs = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
