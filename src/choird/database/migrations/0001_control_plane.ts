/** The control plane's tables (wire.md, Host). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const STATEMENTS = [
  `CREATE TABLE choir_control.agents (
    agent_id text PRIMARY KEY,
    name text NOT NULL,
    image_version text,
    created_at timestamptz NOT NULL DEFAULT now(),
    config jsonb NOT NULL DEFAULT '{}',
    last_session_id text
  )`,
  `CREATE TABLE choir_control.sessions (
    session_id text PRIMARY KEY,
    agent_id text NOT NULL,
    lease_id text,
    status text NOT NULL CHECK (status IN ('active', 'stopped', 'crashed', 'closed')),
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    resource_bindings jsonb NOT NULL,
    epoch int NOT NULL DEFAULT 0,
    last_rev int NOT NULL DEFAULT 0,
    head_hash bytea,
    frozen_reason text,
    bootstrap_hash bytea,
    lease_hash bytea,
    container jsonb,
    image_version text
  )`,
  `CREATE INDEX sessions_by_agent ON choir_control.sessions (agent_id, started_at DESC)`,
  `CREATE INDEX sessions_active ON choir_control.sessions (agent_id) WHERE status = 'active'`,
  // created_at is the agent's own text: the hash chain covers it, and a timestamp would not keep its form.
  `CREATE TABLE choir_control.session_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text NOT NULL,
    rev int NOT NULL CHECK (rev > 0),
    event_type text NOT NULL,
    lane text NOT NULL,
    payload jsonb NOT NULL,
    created_at text NOT NULL,
    canonical text NOT NULL,
    hash bytea NOT NULL,
    UNIQUE (session_id, rev)
  )`,
  `CREATE TABLE choir_control.session_snapshots (
    session_id text NOT NULL,
    rev int NOT NULL,
    hash bytea NOT NULL,
    fold_version int NOT NULL,
    snapshot jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, rev)
  )`,
  // A decision goes through approved to executing and ends done or failed (R52).
  `CREATE TABLE choir_control.pending_approvals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    request_type text NOT NULL,
    payload jsonb NOT NULL,
    status text NOT NULL DEFAULT 'pending'
      CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'executing', 'done', 'failed')),
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz
  )`,
  `CREATE INDEX pending_approvals_open ON choir_control.pending_approvals (id) WHERE status = 'pending'`,
  `CREATE TABLE choir_control.inbox (
    inbox_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gateway text NOT NULL,
    client_id text NOT NULL,
    agent_id text NOT NULL,
    dm text NOT NULL,
    text text NOT NULL,
    attachments jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    session_id text,
    acked_rev int,
    UNIQUE (gateway, client_id)
  )`,
  `CREATE INDEX inbox_unacknowledged ON choir_control.inbox (agent_id, inbox_id) WHERE acked_rev IS NULL`,
  `CREATE TABLE choir_control.gateway_offsets (
    bot text PRIMARY KEY,
    update_id bigint NOT NULL
  )`,
  `CREATE TABLE choir_control.outbox (
    outbox_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text NOT NULL CHECK (source IN ('event', 'choird')),
    source_id text NOT NULL,
    part int NOT NULL,
    gateway text NOT NULL,
    dm text NOT NULL,
    agent_id text NOT NULL,
    session_id text,
    kind text NOT NULL,
    text text NOT NULL,
    in_reply_to bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    attempts int NOT NULL DEFAULT 0,
    UNIQUE (source, source_id, part)
  )`,
  `CREATE INDEX outbox_undelivered ON choir_control.outbox (dm, outbox_id) WHERE delivered_at IS NULL`,
  `CREATE TABLE choir_control.signals (
    signal_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text NOT NULL,
    kind text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    acked_rev int
  )`,
  `CREATE INDEX signals_unacknowledged ON choir_control.signals (session_id, signal_id) WHERE acked_rev IS NULL`,
  `CREATE TABLE choir_control.leases (
    kind text NOT NULL,
    name text NOT NULL,
    agent_id text NOT NULL,
    session_id text NOT NULL,
    epoch int NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, name)
  )`,
  `CREATE TABLE choir_control.call_results (
    session_id text NOT NULL,
    call_id text NOT NULL,
    request_hash bytea NOT NULL,
    response jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, call_id)
  )`,
  `CREATE TABLE choir_control.config_versions (
    version int PRIMARY KEY,
    config jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    hash bytea NOT NULL
  )`,
  `CREATE TABLE choir_control.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL,
    action text NOT NULL,
    session_id text,
    agent_id text,
    detail jsonb NOT NULL DEFAULT '{}'
  )`,
  `CREATE INDEX audit_by_time ON choir_control.audit (at)`
]

export const controlPlane = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
)
