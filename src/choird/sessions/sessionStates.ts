/** The folded states of sessions, kept in memory so that an append folds only what is new. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { newestSnapshot, SESSION_STATES_MAX } from "./snapshots.ts"
import { type readPage, type Replay, type Replayed, replayLog, replayStart, storedLog } from "./storedEvents.ts"

export interface SessionStates {
  /** The state at a session's head, proved from the log where memory does not hold it; or where the log is broken. */
  readonly at: (
    session_id: SessionId,
    rev: number,
    head: Buffer
  ) => Effect.Effect<Replay, Effect.Error<ReturnType<typeof readPage>>>
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
  const provedFrom = Effect.fnUntraced(function* (session_id: SessionId, from: Replayed, rev: number, head: Buffer) {
    const replay = yield* replayLog(storedLog(sql, session_id, rev), from)
    // Up to the first event that is not known here all is proved, and none of it is folded twice.
    if (replay.problem?.newer !== undefined) keep(session_id, replay.at)
    if (replay.problem !== undefined) return replay
    if (!replay.at.hash.equals(head))
      return { ...replay, problem: { rev, reason: `the session's own row says ${hex(head)}` } }
    keep(session_id, replay.at)
    return replay
  })
  const at = Effect.fnUntraced(function* (session_id: SessionId, rev: number, head: Buffer) {
    const kept = states.get(session_id)
    if (kept !== undefined && kept.state.rev <= rev) return yield* provedFrom(session_id, kept, rev, head)
    const snapshot = rev === 0 ? undefined : yield* newestSnapshot(sql, session_id, rev)
    if (snapshot !== undefined) {
      const replay = yield* provedFrom(session_id, snapshot, rev, head)
      if (replay.problem === undefined || replay.problem.newer !== undefined) return replay
      // Only the whole log says that it is broken: the snapshot may be what is wrong.
      yield* Effect.logWarning(`session ${session_id} does not go on from its snapshot: ${replay.problem.reason}`)
    }
    return yield* provedFrom(session_id, replayStart(session_id), rev, head)
  })
  return { at, has: (session_id) => states.has(session_id), keep }
}
