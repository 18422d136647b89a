/** The model whose vectors serve an agent's searches, and how it is asked: not config.json's while vectors of a new one are made. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENT = `CREATE TABLE choir_control.embedding_serving (
    agent_id text PRIMARY KEY,
    model text NOT NULL,
    settings jsonb NOT NULL,
    since timestamptz NOT NULL DEFAULT now()
  )`

export const embeddingServing = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(STATEMENT))
