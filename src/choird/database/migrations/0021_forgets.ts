/** Orders to forget that are not carried out yet, so that a crash does not end them halfway. The words go with the row. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENT = `CREATE TABLE choir_control.forgets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent_id text NOT NULL,
    who text NOT NULL,
    target jsonb NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now()
  )`

export const forgets = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(STATEMENT))
