/** What the requests on one session's socket share. It lives as long as the socket (D10). */
import { Context, Deferred, Effect, type Scope } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { AGENT_REQUESTS_BURST, AGENT_REQUESTS_PER_SECOND } from "#src/shared/limits.ts"
import { makeRequestMemory, type RequestMemory } from "./RequestMemory.ts"
import { take, type TokenBucket } from "./TokenBucket.ts"

const RATE = { perSecond: AGENT_REQUESTS_PER_SECOND, burst: AGENT_REQUESTS_BURST }

export interface SocketSession {
  readonly session_id: SessionId
  readonly requests: RequestMemory
  /** What was begun for the agent and may outlive the request that began it ends with this (EXECUTE_HOST_TOOL). */
  readonly runs: Scope.Scope
  /** Counts a request; the time in ms to wait when it is one too many, else 0. */
  admit(now_ms: number): number
  /** Ends the push stream before this one; what it gives is completed when a newer one takes over. */
  readonly newestStream: Effect.Effect<Deferred.Deferred<void>>
}

export const makeSocketSession = (session_id: SessionId, now_ms: number, runs: Scope.Scope): SocketSession => {
  let bucket: TokenBucket = { tokens: RATE.burst, at_ms: now_ms }
  let stream: Deferred.Deferred<void> | undefined
  return {
    session_id,
    requests: makeRequestMemory(),
    runs,
    admit: (now_ms) => {
      const [next, wait_ms] = take(bucket, RATE, now_ms)
      bucket = next
      return wait_ms
    },
    newestStream: Effect.sync(() => {
      if (stream !== undefined) Deferred.doneUnsafe(stream, Effect.void)
      stream = Deferred.makeUnsafe()
      return stream
    })
  }
}

/** The session whose socket the request came by; none on a socket that belongs to no session. */
export const CurrentSocketSession = Context.Reference<SocketSession | undefined>("choir/choird/CurrentSocketSession", {
  defaultValue: () => undefined
})
