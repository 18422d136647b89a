/** The liveness of agents: the arrival of their heartbeats, by choird's own clock, which is not the host's (D8, E8). */
import { Context, Deferred, Effect, Layer } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { CallsApart } from "#schema/AgentApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import { AgentViews } from "./AgentViews.ts"
import { BREAKER_WINDOW_MS } from "./Breaker.ts"
import { CrashTimes } from "./CrashTimes.ts"

/** The liveness of one epoch, which the API's handlers update. */
export interface Liveness {
  readonly agent_id: AgentId
  readonly epoch: number
  readonly hello: Deferred.Deferred<void>
  readonly goodbye: Deferred.Deferred<string>
  /** Done once it has sent an event that is not known here (D53). */
  readonly newer: Deferred.Deferred<void>
  /** By the monotonic clock; 0 before the first one. */
  last_heartbeat_ms: number
  /** Its heartbeats that choird has not answered yet: an agent that waits for choird is not silent, however slow the database is (D8). */
  unanswered: number
  /** The newest revision that it named. */
  head_rev: number | null
}

/** The liveness of the epochs that run now, by session. */
export class LiveEpochs extends Context.Service<LiveEpochs, Map<SessionId, Liveness>>()("choir/choird/LiveEpochs") {
  static readonly layer = Layer.sync(LiveEpochs, () => new Map())
}

/** The last heartbeat of an agent. */
export interface LastHeartbeat {
  /** Milliseconds since it arrived; null before the first one. */
  readonly age_ms: number | null
  /** The newest revision that it named. */
  readonly head_rev: number | null
  readonly crashes: number
}

/** Lets the handlers reach this epoch for as long as the scope lives. */
export const openLiveness = Effect.fnUntraced(function* ({ agent_id, epoch, session_id }: SessionRow) {
  const live = yield* LiveEpochs
  return yield* Effect.acquireRelease(
    Effect.sync(() => {
      const hello = Deferred.makeUnsafe<void>()
      const goodbye = Deferred.makeUnsafe<string>()
      const newer = Deferred.makeUnsafe<void>()
      const liveness: Liveness = {
        agent_id,
        epoch,
        hello,
        goodbye,
        newer,
        last_heartbeat_ms: 0,
        unanswered: 0,
        head_rev: null
      }
      live.set(session_id, liveness)
      return liveness
    }),
    (liveness) =>
      Effect.sync(() => {
        if (live.get(session_id) === liveness) live.delete(session_id)
      })
  )
})

/** The part of the lifecycle that handlers call. */
export const makeHeartbeats = Effect.gen(function* () {
  const crashes = yield* CrashTimes
  const live = yield* LiveEpochs
  const views = yield* AgentViews
  return {
    hello: Effect.fnUntraced(function* (session_id: SessionId, epoch: number, calls_apart?: CallsApart) {
      const liveness = live.get(session_id)
      if (liveness?.epoch !== epoch) return
      if (calls_apart !== undefined) yield* views.change(liveness.agent_id, { calls_apart })
      yield* Deferred.succeed(liveness.hello, undefined)
    }),
    heartbeat: Effect.fnUntraced(function* (session_id: SessionId, config_version: number, head_rev?: number) {
      const liveness = live.get(session_id)
      if (liveness === undefined) return
      liveness.last_heartbeat_ms = yield* monotonicMs
      liveness.head_rev = head_rev ?? liveness.head_rev
      const view = views.of(liveness.agent_id)
      if (view.config_version !== config_version) yield* views.change(liveness.agent_id, { config_version })
    }),
    whileAnswering: <A, E, R>(session_id: SessionId, answer: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const liveness = live.get(session_id)
        if (liveness === undefined) return answer
        const asked = Effect.sync(() => {
          liveness.unanswered += 1
        })
        const answered = Effect.map(monotonicMs, (now_ms) => {
          liveness.unanswered -= 1
          liveness.last_heartbeat_ms = now_ms
        })
        return Effect.acquireUseRelease(
          asked,
          () => answer,
          () => answered
        )
      }),
    lastHeartbeat: (agent_id: AgentId) =>
      Effect.map(monotonicMs, (now_ms): LastHeartbeat => {
        const { session_id } = views.of(agent_id)
        const liveness = session_id === null ? undefined : live.get(session_id)
        const recent = (crashes.get(agent_id) ?? []).filter((at_ms) => now_ms - at_ms < BREAKER_WINDOW_MS)
        const last_heartbeat_ms = liveness?.last_heartbeat_ms ?? 0
        return {
          age_ms: last_heartbeat_ms === 0 ? null : Math.max(0, now_ms - last_heartbeat_ms),
          head_rev: liveness?.head_rev ?? null,
          crashes: recent.length
        }
      }),
    newer: (session_id: SessionId) =>
      Effect.sync(() => {
        const liveness = live.get(session_id)
        if (liveness !== undefined) Deferred.doneUnsafe(liveness.newer, Effect.void)
      }),
    terminating: (session_id: SessionId, reason: string) =>
      Effect.sync(() => {
        const liveness = live.get(session_id)
        if (liveness !== undefined) Deferred.doneUnsafe(liveness.goodbye, Effect.succeed(reason))
      })
  }
})

/** The interval between checks of an agent's heartbeats. */
export const LIVENESS_LOOK_MS = 500
/** A check that is this late means that choird itself stood still, so every clock starts again (D8). */
const CHOIRD_PAUSE_MS = 2000

/** The times of the last heartbeat and the last check, and the number of checks in a row that found silence beyond the threshold. */
export interface Look {
  readonly last_heartbeat_ms: number
  readonly looked_ms: number
  readonly silent: number
}

/** Heartbeats that arrived while choird itself was held up are read before the second check. */
const SILENT_LOOKS = 2

export const isSilent = ({ silent }: Look): boolean => silent >= SILENT_LOOKS

/** A late check means that choird slept, and that time proves nothing about the agent. */
export const look = (before: Look, arrived_ms: number, now_ms: number, threshold_ms: number): Look => {
  const slept = now_ms - before.looked_ms > LIVENESS_LOOK_MS + CHOIRD_PAUSE_MS
  const last_heartbeat_ms = slept ? now_ms : Math.max(before.last_heartbeat_ms, arrived_ms)
  const silent = now_ms - last_heartbeat_ms > threshold_ms ? before.silent + 1 : 0
  return { last_heartbeat_ms, looked_ms: now_ms, silent }
}

/**
 * Returns the silence in ms once it exceeds the current `threshold_ms`. `last_heartbeat_ms` is the newest arrival as of `now_ms`, by the
 * monotonic clock.
 */
export const awaitSilence = Effect.fnUntraced(function* (
  last_heartbeat_ms: (now_ms: number) => number,
  threshold_ms: Effect.Effect<number>
) {
  const start_ms = yield* monotonicMs
  let last: Look = { last_heartbeat_ms: start_ms, looked_ms: start_ms, silent: 0 }
  while (!isSilent(last)) {
    yield* Effect.sleep(LIVENESS_LOOK_MS)
    const now_ms = yield* monotonicMs
    last = look(last, last_heartbeat_ms(now_ms), now_ms, yield* threshold_ms)
  }
  return last.looked_ms - last.last_heartbeat_ms
})
