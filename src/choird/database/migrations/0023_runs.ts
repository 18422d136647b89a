/** The runs of skills and of jobs, as the events of their sessions tell them. They hold no words of people or models. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.skill_runs (
    session_id text NOT NULL,
    started_rev integer NOT NULL,
    agent_id text NOT NULL,
    lane text NOT NULL,
    skill text NOT NULL,
    trigger text,
    state text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_rev integer,
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('completed', 'failed', 'cancelled')),
    steps integer NOT NULL DEFAULT 0,
    retries integer NOT NULL DEFAULT 0,
    confidence double precision,
    judge_score double precision,
    tokens bigint NOT NULL DEFAULT 0,
    cost_nano_usd bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, started_rev),
    CHECK ((ended_rev IS NULL) = (outcome IS NULL))
  )`,
  `CREATE INDEX skill_runs_agent ON choir_control.skill_runs (agent_id, started_at DESC)`,
  `CREATE TABLE choir_control.job_runs (
    session_id text NOT NULL,
    job_id text NOT NULL,
    started_rev integer NOT NULL,
    agent_id text NOT NULL,
    job_name text NOT NULL,
    agent_type text,
    pool text,
    skill text,
    branch text,
    worktree text,
    resumes text,
    started_at timestamptz NOT NULL,
    ended_rev integer,
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('completed', 'error', 'cancelled', 'budget', 'stuck')),
    steps integer NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    cost_nano_usd bigint NOT NULL DEFAULT 0,
    writeback jsonb,
    orphan boolean NOT NULL DEFAULT false,
    PRIMARY KEY (session_id, job_id),
    CHECK ((ended_rev IS NULL) = (outcome IS NULL))
  )`,
  `CREATE INDEX job_runs_agent ON choir_control.job_runs (agent_id, started_at DESC)`
]

export const runs = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
