/** Sessions that run and in which nothing happens: all of what they said may be found, also by the other sessions of their agent. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { askForChunksUntil } from "#src/choird/queues/memoryJobs.ts"
import { inTransaction } from "#src/choird/database/DatabaseAway.ts"

/** The silence of a session after which its chunks are made. */
const IDLE_MS = 900_000

/** Asks for the chunks of the agents' sessions that are idle and have some events without any. */
export const askForIdleSessions = Effect.fnUntraced(function* (agents: ReadonlyArray<AgentId>) {
  const sql = yield* SqlClient.SqlClient
  const now_ms = yield* Clock.currentTimeMillis
  const rows = yield* sql<{ readonly session_id: SessionId; readonly last_rev: number; readonly created_at: string }>`
    SELECT s.session_id, s.last_rev, e.created_at FROM choir_control.sessions AS s
    JOIN choir_control.session_events AS e ON e.session_id = s.session_id AND e.rev = s.last_rev
    WHERE s.status = 'active' AND s.agent_id = ANY(${agents}::text[]) AND s.memory_until < s.last_rev`
  for (const { created_at, last_rev, session_id } of rows)
    if (Date.parse(created_at) <= now_ms - IDLE_MS) yield* inTransaction(askForChunksUntil(session_id, last_rev))
})
