/** The number of each agent, from which a runtime makes a uid of its own. No row is removed: another agent would get the uid that files have. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.agent_numbers (
    agent_id text PRIMARY KEY,
    number integer NOT NULL UNIQUE CHECK (number >= 0)
  )`
]

export const agentNumbers = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
