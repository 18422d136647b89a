/** The state that the requests of one session share on all listeners, for as long as the session's epoch (D10). */
import { Context, Deferred, Effect, type Scope, Semaphore } from "effect"
import type { Socket } from "node:net"
import type { SessionId } from "#schema/Ids.ts"
import { makeRequestMemory, type RequestMemory } from "./RequestMemory.ts"
import { take, type TokenBucket } from "#src/choird/queues/TokenBucket.ts"
import { makeRequestUse, type RequestUse } from "./RequestQueue.ts"

/** Open connections to a session's socket (R47). */
export const AGENT_CONNECTIONS_MAX = 8
/** Connections that a session may open per second in the long run. */
const AGENT_NEW_CONNECTIONS_PER_SECOND = 20
/** More than {@link AGENT_REQUESTS_BURST}, which may come on a connection each. */
export const AGENT_NEW_CONNECTIONS_BURST = 256
/** Requests that a session may send per second in the long run (R47). */
export const AGENT_REQUESTS_PER_SECOND = 100
/** Requests that a session may send at once after a pause (R47). */
export const AGENT_REQUESTS_BURST = 200
/** Bytes of bodies that a session may send per second in the long run: decoding, hashing and storing them takes choird's one thread. */
export const AGENT_BYTES_PER_SECOND = 1024 * 1024
/** Bytes of bodies that a session may send at once after a pause; more than an agent holds back while choird is away. */
export const AGENT_BYTES_BURST = 16 * 1024 * 1024

const RATE = { perSecond: AGENT_REQUESTS_PER_SECOND, burst: AGENT_REQUESTS_BURST }
const CONNECTIONS = { perSecond: AGENT_NEW_CONNECTIONS_PER_SECOND, burst: AGENT_NEW_CONNECTIONS_BURST }
const BYTES = { perSecond: AGENT_BYTES_PER_SECOND, burst: AGENT_BYTES_BURST }

export interface OpenSession {
  readonly session_id: SessionId
  readonly requests: RequestMemory
  /** The use that its requests made of choird lately. */
  readonly use: RequestUse
  /** The scope of work that may outlive the request that began it (EXECUTE_HOST_TOOL). */
  readonly runs: Scope.Closeable
  /** Counts a request and the bytes of its body; the time in ms to wait when either is too much, else 0. */
  admit(now_ms: number, bytes: number): number
  /** Decodes and stores one heartbeat at a time: they are stored in turn anyway, and one that waits decoded takes ten times its body. */
  readonly heartbeats: Semaphore.Semaphore
  /** Counts a connection as the session's until it closes; `false` when it would be one too many (R47), or they come too fast. */
  claim(connection: Socket, now_ms: number): boolean
  /** Cuts every connection of the session. */
  readonly disconnect: Effect.Effect<void>
  /** Ends the previous push stream, and returns a signal that completes when a newer stream replaces this one. */
  readonly newestStream: Effect.Effect<Deferred.Deferred<void>>
}

export const makeOpenSession = (session_id: SessionId, now_ms: number, runs: Scope.Closeable): OpenSession => {
  let bucket: TokenBucket = { tokens: RATE.burst, at_ms: now_ms }
  let bodies: TokenBucket = { tokens: BYTES.burst, at_ms: now_ms }
  let opened: TokenBucket = { tokens: CONNECTIONS.burst, at_ms: now_ms }
  let stream: Deferred.Deferred<void> | undefined
  const connections = new Set<Socket>()
  return {
    session_id,
    requests: makeRequestMemory(),
    use: makeRequestUse(now_ms),
    runs,
    heartbeats: Semaphore.makeUnsafe(1),
    admit: (now_ms, bytes) => {
      const [next, wait_ms] = take(bucket, RATE, now_ms)
      bucket = next
      if (wait_ms > 0) return wait_ms
      const [left, bodies_ms] = take(bodies, BYTES, now_ms, bytes)
      bodies = left
      return bodies_ms
    },
    claim: (connection, now_ms) => {
      if (connections.has(connection)) return true
      if (connections.size >= AGENT_CONNECTIONS_MAX) return false
      const [next, wait_ms] = take(opened, CONNECTIONS, now_ms)
      opened = next
      if (wait_ms > 0) return false
      connections.add(connection)
      connection.once("close", () => connections.delete(connection))
      return true
    },
    disconnect: Effect.sync(() => {
      for (const connection of connections) connection.destroy()
    }),
    newestStream: Effect.sync(() => {
      if (stream !== undefined) Deferred.doneUnsafe(stream, Effect.void)
      stream = Deferred.makeUnsafe()
      return stream
    })
  }
}

/** The session of a request; `undefined` when neither a socket nor a token proves one. */
export const CurrentOpenSession = Context.Reference<OpenSession | undefined>("choir/choird/CurrentOpenSession", {
  defaultValue: () => undefined
})
