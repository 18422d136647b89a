/**
 * How a message becomes a signal. Whoever adds messages or makes a session active first takes the agent's lock, then the lock of
 * the session's row: so no message falls between an inbox and a starting session, and both kinds of ids commit in order.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"

/** Held until the transaction ends. Agents' locks are taken in the order of their ids. */
export const lockAgent = (sql: SqlClient.SqlClient, agent_id: AgentId) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${`choir/agent/${agent_id}`}, 0))`

/** The agent's active session, with its row locked. */
export const lockActiveSession = (sql: SqlClient.SqlClient, agent_id: AgentId) =>
  Effect.map(
    sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
      WHERE agent_id = ${agent_id} AND status = 'active' FOR UPDATE`,
    ([session]) => session?.session_id
  )

/** Makes signals of the agent's unacknowledged messages that this session has not been told of, in their order. */
export const signalInbox = (sql: SqlClient.SqlClient, agent_id: AgentId, session_id: SessionId) =>
  Effect.asVoid(sql`WITH waiting AS (
      UPDATE choir_control.inbox SET session_id = ${session_id}
      WHERE agent_id = ${agent_id} AND acked_rev IS NULL AND session_id IS DISTINCT FROM ${session_id}
      RETURNING inbox_id
    )
    INSERT INTO choir_control.signals (session_id, kind, payload)
    SELECT ${session_id}, 'UserMessage', jsonb_build_object('inbox_id', inbox_id::text)
    FROM waiting ORDER BY inbox_id`)

/** Ends the signals of messages that another session has answered meanwhile, so that this one is not told of them again. */
export const dropAnswered = (sql: SqlClient.SqlClient, session_id: SessionId) =>
  Effect.asVoid(sql`UPDATE choir_control.signals AS s SET acked_rev = 0
    FROM choir_control.inbox AS i
    WHERE s.session_id = ${session_id} AND s.acked_rev IS NULL AND s.kind = 'UserMessage'
      AND i.inbox_id = (s.payload ->> 'inbox_id')::bigint
      AND (i.acked_rev IS NOT NULL OR i.session_id IS DISTINCT FROM ${session_id})`)
