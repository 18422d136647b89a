/** Work on agents' memory that waits: the chunks of a session, and the promotion of an agent's older sessions. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"

/** The pause after the first failure of a job, which doubles, and the longest one. */
const JOB_PAUSE_S = 60
const JOB_PAUSE_S_MAX = 21_600
/** Characters of a job's problem. */
const PROBLEM_CHARS_MAX = 500

export interface MemoryJob {
  readonly agent_id: AgentId
  readonly kind: "chunk" | "promote"
  readonly session_id: SessionId
  /** As text, since it tells a request from a later one of the same job. */
  readonly requested_at: string
}

/** Lets the chunks of a session reach up to a revision, and asks for them; what they reached stays. */
export const askForChunksUntil = Effect.fnUntraced(function* (session_id: SessionId, rev: number) {
  const sql = yield* SqlClient.SqlClient
  const further = yield* sql`UPDATE choir_control.sessions SET memory_until = least(${rev}::int, last_rev)
    WHERE session_id = ${session_id} AND memory_until < least(${rev}::int, last_rev) RETURNING 1`
  if (further.length > 0) yield* askForChunks(session_id)
})

/** Asks for the chunks of what a session's log holds, now. An earlier request for them counts as a new one. */
export const askForChunks = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO choir_control.memory_jobs (agent_id, kind, session_id)
    SELECT agent_id, 'chunk', session_id FROM choir_control.sessions WHERE session_id = ${session_id} AND last_rev > 0
    ON CONFLICT (agent_id, kind, session_id)
    DO UPDATE SET requested_at = clock_timestamp(), attempts = 0, run_after = '-infinity', problem = NULL`
})

/** Asks for the promotion of the agent's older sessions, after one has got its chunks. */
export const askForPromotion = Effect.fnUntraced(function* ({ agent_id, session_id }: MemoryJob) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO choir_control.memory_jobs (agent_id, kind, session_id)
    VALUES (${agent_id}, 'promote', ${session_id})
    ON CONFLICT (agent_id, kind, session_id)
    DO UPDATE SET requested_at = clock_timestamp(), attempts = 0, run_after = '-infinity', problem = NULL`
})

/** The agent's job that waits longest of those whose time has come; chunks go before promotions. */
export const nextJob = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [job] = yield* sql<MemoryJob>`SELECT agent_id, kind, session_id, requested_at::text AS requested_at
    FROM choir_control.memory_jobs WHERE agent_id = ${agent_id} AND run_after <= now()
    ORDER BY kind, requested_at, session_id LIMIT 1`
  return job
})

/** Removes a job that is done, unless it was asked for again meanwhile. */
export const finishJob = Effect.fnUntraced(function* ({ agent_id, kind, requested_at, session_id }: MemoryJob) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.memory_jobs WHERE agent_id = ${agent_id} AND kind = ${kind}
    AND session_id = ${session_id} AND requested_at::text = ${requested_at}`
})

/** Lets a job wait that failed: a minute, then twice as long each time, and six hours at most. */
export const postponeJob = Effect.fnUntraced(function* ({ agent_id, kind, session_id }: MemoryJob, problem: string) {
  const sql = yield* SqlClient.SqlClient
  const text = problem.slice(0, PROBLEM_CHARS_MAX).toWellFormed().replaceAll("\0", "\uFFFD")
  yield* sql`UPDATE choir_control.memory_jobs SET attempts = least(attempts + 1, 1000), problem = ${text},
      run_after = now() + least(${JOB_PAUSE_S} * 2.0 ^ least(attempts, 20), ${JOB_PAUSE_S_MAX}) * interval '1 second'
    WHERE agent_id = ${agent_id} AND kind = ${kind} AND session_id = ${session_id}`
})
