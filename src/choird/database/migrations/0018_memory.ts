/** Work on memory that waits, so that a session's end never waits for it, and what embeddings cost. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.memory_jobs (
    agent_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('chunk', 'promote')),
    session_id text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    attempts smallint NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT '-infinity',
    problem text,
    PRIMARY KEY (agent_id, kind, session_id)
  )`,
  `CREATE TABLE choir_control.embedding_costs (
    agent_id text NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    texts bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    cost_usd double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, day, model)
  )`
]

export const memory = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
