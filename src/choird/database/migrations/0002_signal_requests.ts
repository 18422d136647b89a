/** The request that a signal came from, so that a repeated request makes one signal (R28). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `ALTER TABLE choir_control.signals ADD COLUMN request_id text`,
  `CREATE UNIQUE INDEX signals_by_request ON choir_control.signals (session_id, request_id) WHERE request_id IS NOT NULL`
]

export const signalRequests = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
