/** Whether an agent hangs: liveness is the arrival of its heartbeats, by choird's own clock, which is not the host's (D8, E8). */
import { Deferred, Effect } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import type { AgentViews } from "./AgentViews.ts"
import { BREAKER_WINDOW_MS } from "./Breaker.ts"

/** Where the API's handlers tell the epoch of what its agent did. */
export interface Hearing {
  readonly agent_id: AgentId
  readonly epoch: number
  readonly hello: Deferred.Deferred<void>
  readonly goodbye: Deferred.Deferred<string>
  /** Done once it has sent an event that is not known here (D53). */
  readonly newer: Deferred.Deferred<void>
  /** When it was heard, by the monotonic clock; 0 for one that was not. */
  heard_ms: number
  /** Its heartbeats that choird has not answered yet: who waits for choird is not silent, however late the database is (D8). */
  unanswered: number
  /** The newest revision that it spoke of. */
  head_rev: number | null
}

/** What was last heard of an agent. */
export interface Pulse {
  /** Milliseconds since it was heard; null for one that was not. */
  readonly age_ms: number | null
  /** The newest revision that it spoke of. */
  readonly head_rev: number | null
  readonly crashes: number
}

/** Lets the handlers reach this epoch for as long as the scope lives. */
export const openHearing = (
  { hearings }: { readonly hearings: Map<SessionId, Hearing> },
  { agent_id, epoch, session_id }: SessionRow
) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const hello = Deferred.makeUnsafe<void>()
      const goodbye = Deferred.makeUnsafe<string>()
      const newer = Deferred.makeUnsafe<void>()
      const hearing: Hearing = { agent_id, epoch, hello, goodbye, newer, heard_ms: 0, unanswered: 0, head_rev: null }
      hearings.set(session_id, hearing)
      return hearing
    }),
    (hearing) =>
      Effect.sync(() => {
        if (hearings.get(session_id) === hearing) hearings.delete(session_id)
      })
  )

interface Heard {
  readonly crashes: ReadonlyMap<AgentId, ReadonlyArray<number>>
  readonly hearings: ReadonlyMap<SessionId, Hearing>
  readonly views: AgentViews
}

/** The part of the lifecycle that handlers speak to. */
export const makeHearingOf = ({ crashes, hearings, views }: Heard) => ({
  hello: (session_id: SessionId, epoch: number) =>
    Effect.sync(() => {
      const hearing = hearings.get(session_id)
      if (hearing?.epoch === epoch) Deferred.doneUnsafe(hearing.hello, Effect.void)
    }),
  heard: Effect.fnUntraced(function* (session_id: SessionId, config_version: number, head_rev?: number) {
    const hearing = hearings.get(session_id)
    if (hearing === undefined) return
    hearing.heard_ms = yield* monotonicMs
    hearing.head_rev = head_rev ?? hearing.head_rev
    const view = views.of(hearing.agent_id)
    if (view.config_version !== config_version) yield* views.change(hearing.agent_id, { config_version })
  }),
  answering: <A, E, R>(session_id: SessionId, answer: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const hearing = hearings.get(session_id)
      if (hearing === undefined) return answer
      const asked = Effect.sync(() => {
        hearing.unanswered += 1
      })
      const answered = Effect.map(monotonicMs, (now_ms) => {
        hearing.unanswered -= 1
        hearing.heard_ms = now_ms
      })
      return Effect.acquireUseRelease(
        asked,
        () => answer,
        () => answered
      )
    }),
  pulse: (agent_id: AgentId) =>
    Effect.map(monotonicMs, (now_ms): Pulse => {
      const { session_id } = views.of(agent_id)
      const hearing = session_id === null ? undefined : hearings.get(session_id)
      const recent = (crashes.get(agent_id) ?? []).filter((at_ms) => now_ms - at_ms < BREAKER_WINDOW_MS)
      const heard_ms = hearing?.heard_ms ?? 0
      return {
        age_ms: heard_ms === 0 ? null : Math.max(0, now_ms - heard_ms),
        head_rev: hearing?.head_rev ?? null,
        crashes: recent.length
      }
    }),
  newer: (session_id: SessionId) =>
    Effect.sync(() => {
      const hearing = hearings.get(session_id)
      if (hearing !== undefined) Deferred.doneUnsafe(hearing.newer, Effect.void)
    }),
  terminating: (session_id: SessionId, reason: string) =>
    Effect.sync(() => {
      const hearing = hearings.get(session_id)
      if (hearing !== undefined) Deferred.doneUnsafe(hearing.goodbye, Effect.succeed(reason))
    })
})

/** Between two looks at an agent's heartbeats. */
export const LIVENESS_LOOK_MS = 500
/** A look that comes this much too late means that choird itself stood still, so that every clock starts anew (D8). */
const CHOIRD_PAUSE_MS = 2000

/** When the agent was last heard, when choird last looked, and how often in a row it found silence beyond the threshold. */
export interface Look {
  readonly heard_ms: number
  readonly looked_ms: number
  readonly silent: number
}

/** What arrived while choird itself was held up is read before the second look. */
const SILENT_LOOKS = 2

export const isSilent = ({ silent }: Look): boolean => silent >= SILENT_LOOKS

/** A look that comes too late says that choird slept, and what it slept through proves nothing about the agent. */
export const look = (before: Look, arrived_ms: number, now_ms: number, threshold_ms: number): Look => {
  const slept = now_ms - before.looked_ms > LIVENESS_LOOK_MS + CHOIRD_PAUSE_MS
  const heard_ms = slept ? now_ms : Math.max(before.heard_ms, arrived_ms)
  const silent = now_ms - heard_ms > threshold_ms ? before.silent + 1 : 0
  return { heard_ms, looked_ms: now_ms, silent }
}

/**
 * Returns once nothing was heard for longer than `threshold_ms` says at that moment, with the silence in ms. `heard_ms` tells the
 * newest arrival, by the monotonic clock, to whoever looks at `now_ms`.
 */
export const awaitSilence = Effect.fnUntraced(function* (
  heard_ms: (now_ms: number) => number,
  threshold_ms: Effect.Effect<number>
) {
  const start_ms = yield* monotonicMs
  let last: Look = { heard_ms: start_ms, looked_ms: start_ms, silent: 0 }
  while (!isSilent(last)) {
    yield* Effect.sleep(LIVENESS_LOOK_MS)
    const now_ms = yield* monotonicMs
    last = look(last, heard_ms(now_ms), now_ms, yield* threshold_ms)
  }
  return last.looked_ms - last.heard_ms
})
