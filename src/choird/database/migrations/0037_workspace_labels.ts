/** The origin of a workspace's files as far as it is known, by its folder: it outlives the sessions that worked there. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.workspace_labels (
    path text PRIMARY KEY,
    label jsonb NOT NULL
  )`
]

export const workspaceLabels = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
