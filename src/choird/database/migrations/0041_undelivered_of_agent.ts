/** An index by which the undelivered messages of one agent are counted. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE INDEX outbox_of_agent ON choir_control.outbox (agent_id) WHERE delivered_at IS NULL AND failed_at IS NULL`
]

export const undeliveredOfAgent = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
