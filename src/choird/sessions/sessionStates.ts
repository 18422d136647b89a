/** The folded states of sessions, kept in memory so that an append folds only what is new. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { hex } from "#src/shared/hashChain.ts"
import { SESSION_STATES_MAX } from "#src/shared/limits.ts"
import { type Replay, type Replayed, replayStart, replayStored } from "./storedEvents.ts"

export interface SessionStates {
  /** The state at a session's head, proved from the log where memory does not hold it; or where the log is broken. */
  readonly at: (
    session_id: SessionId,
    rev: number,
    head: Buffer
  ) => Effect.Effect<Replay, Effect.Error<ReturnType<typeof replayStored>>>
  readonly has: (session_id: SessionId) => boolean
  /** Keeps a state; the one not used for longest leaves when there are too many. */
  readonly keep: (session_id: SessionId, at: Replayed) => void
}

export const makeSessionStates = (sql: SqlClient.SqlClient): SessionStates => {
  const states = new Map<SessionId, Replayed>()
  const keep = (session_id: SessionId, at: Replayed) => {
    states.delete(session_id)
    states.set(session_id, at)
    const oldest = states.keys().next()
    if (states.size > SESSION_STATES_MAX && oldest.done !== true) states.delete(oldest.value)
  }
  const at = Effect.fnUntraced(function* (session_id: SessionId, rev: number, head: Buffer) {
    const kept = states.get(session_id)
    const from = kept !== undefined && kept.state.rev <= rev ? kept : replayStart(session_id)
    const replay = yield* replayStored(sql, session_id, from, rev)
    if (replay.problem !== undefined) return replay
    if (!replay.at.hash.equals(head))
      return { ...replay, problem: { rev, reason: `the session's own row says ${hex(head)}` } }
    keep(session_id, replay.at)
    return replay
  })
  return { at, has: (session_id) => states.has(session_id), keep }
}
