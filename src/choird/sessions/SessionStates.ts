/** The folded states of sessions, kept in memory so that an append folds only what is new. */
import { Context, Effect, Layer } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { newestSnapshot, SESSION_STATES_MAX } from "./snapshots.ts"
import { stateBytes } from "#src/shared/session/stateBytes.ts"
import { type Replay, type Replayed, replayLog, replayStart, storedLog } from "./storedEvents.ts"

/** Bytes as JSON of all kept states: one agent with a state of the largest size may have been in many sessions. */
const SESSION_STATES_BYTES_MAX = 64 * 1024 * 1024

export class SessionStates extends Context.Service<
  SessionStates,
  {
    /** The state at a session's head, proved from the log where memory does not hold it; or where the log is broken. */
    at(session_id: SessionId, rev: number, head: Buffer): Effect.Effect<Replay, DatabaseAway>
    has(session_id: SessionId): boolean
    /** Keeps a state. Of more than SESSION_STATES_MAX, or SESSION_STATES_BYTES_MAX, those that were kept longest ago leave. */
    keep(session_id: SessionId, at: Replayed): void
    /** Leaves the session to be folded from its log once more. */
    drop(session_id: SessionId): void
  }
>()("choir/choird/SessionStates") {
  static readonly layer = Layer.effect(
    SessionStates,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      const states = new BoundedMap<SessionId, Replayed>(SESSION_STATES_MAX, {
        most: SESSION_STATES_BYTES_MAX,
        of: ({ state }) => stateBytes(state)
      })
      const provedFrom = Effect.fnUntraced(function* (
        session_id: SessionId,
        from: Replayed,
        rev: number,
        head: Buffer
      ) {
        const replay = yield* replayLog(storedLog(session_id, rev), from)
        // Up to the first event that is not known here all is proved, and none of it is folded twice.
        if (replay.problem?.newer !== undefined) states.set(session_id, replay.at)
        if (replay.problem !== undefined) return replay
        if (!replay.at.hash.equals(head))
          return { ...replay, problem: { rev, reason: `the database says that its hash is ${hex(head)}` } }
        states.set(session_id, replay.at)
        return replay
      })
      const at = Effect.fnUntraced(function* (session_id: SessionId, rev: number, head: Buffer) {
        const kept = states.get(session_id)
        if (kept !== undefined && kept.state.rev <= rev) return yield* provedFrom(session_id, kept, rev, head)
        const snapshot = rev === 0 ? undefined : yield* newestSnapshot(session_id, rev)
        if (snapshot !== undefined) {
          const replay = yield* provedFrom(session_id, snapshot, rev, head)
          if (replay.problem === undefined || replay.problem.newer !== undefined) return replay
          // Only the whole log says that it is broken: the snapshot may be what is wrong.
          yield* Effect.logWarning(
            `session ${session_id} does not continue from its snapshot: ${replay.problem.reason}`
          )
        }
        return yield* provedFrom(session_id, replayStart(session_id), rev, head)
      }, onDatabase)
      return SessionStates.of({
        at,
        has: (session_id) => states.has(session_id),
        keep: (session_id, state) => states.set(session_id, state),
        drop: (session_id) => states.delete(session_id)
      })
    })
  )
}
