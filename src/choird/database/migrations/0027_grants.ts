/** Standing grants, the one that approved a request, and the job that asked, which a grant may be for. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.grants (
    grant_id bigserial PRIMARY KEY,
    agent_id text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('job', 'agent')),
    session_id text,
    job_id text,
    job_name text,
    approval_id bigint NOT NULL UNIQUE,
    words jsonb NOT NULL,
    uses int NOT NULL DEFAULT 0,
    uses_max int NOT NULL,
    until timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    revoked_at timestamptz,
    revoked_by text,
    CHECK (uses <= uses_max),
    CHECK ((scope = 'job') = (job_id IS NOT NULL AND session_id IS NOT NULL))
  )`,
  `CREATE INDEX grants_by_agent ON choir_control.grants (agent_id, until) WHERE revoked_at IS NULL`,
  `ALTER TABLE choir_control.pending_approvals ADD COLUMN job_id text, ADD COLUMN grant_id bigint`
]

export const grants = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
