/** The rehearsal of a proposed skill; null before, and for every other request. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const rehearsals = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`ALTER TABLE choir_control.pending_approvals ADD COLUMN rehearsal jsonb`)
)
