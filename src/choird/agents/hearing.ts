/** What choird hears of an agent in its epoch: told by the API's handlers, waited for and looked at by the epoch. */
import { Deferred, Effect } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
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
