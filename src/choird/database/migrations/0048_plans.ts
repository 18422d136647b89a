/** The plans of agents, and each time of one that is over. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.plans (
    agent_id text NOT NULL,
    plan_id integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('once', 'every', 'cron')),
    schedule text NOT NULL,
    zone text NOT NULL,
    text text NOT NULL,
    dm text NOT NULL,
    labelled boolean NOT NULL,
    sources jsonb NOT NULL DEFAULT '[]',
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paused', 'ended', 'removed')),
    reason text,
    made_by text NOT NULL,
    request text NOT NULL,
    next_at timestamptz,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (agent_id, plan_id),
    UNIQUE (agent_id, request)
  )`,
  `CREATE INDEX plans_due ON choir_control.plans (next_at) WHERE state = 'open'`,
  `CREATE TABLE choir_control.plan_slots (
    agent_id text NOT NULL,
    plan_id integer NOT NULL,
    slot timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('said', 'skipped', 'missed')),
    missed integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, plan_id, slot),
    FOREIGN KEY (agent_id, plan_id) REFERENCES choir_control.plans ON DELETE CASCADE
  )`
]

export const plans = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
