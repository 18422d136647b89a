/** Limits for TCP clients without a valid token: requests by address, and connections (R47). */
import type { Socket } from "node:net"
import { take, type TokenBucket } from "#src/choird/queues/TokenBucket.ts"

/** Connections of the agents' TCP listener that have proved no session yet; the next one replaces the oldest. */
export const UNAUTHENTICATED_CONNECTIONS_MAX = 64
/** Requests without a valid token that an address may send per second in the long run. */
const UNAUTHENTICATED_REQUESTS_PER_SECOND = 10
/** Requests without a valid token that an address may send at once after a pause. */
export const UNAUTHENTICATED_REQUESTS_BURST = 50
/** Addresses whose requests without a valid token are counted apart; all further ones share one count. */
const UNAUTHENTICATED_ADDRESSES_MAX = 1024

const RATE = { perSecond: UNAUTHENTICATED_REQUESTS_PER_SECOND, burst: UNAUTHENTICATED_REQUESTS_BURST }
const REST_MS = (UNAUTHENTICATED_REQUESTS_BURST / UNAUTHENTICATED_REQUESTS_PER_SECOND) * 1000

interface Counted {
  bucket: TokenBucket
  /** Requests that were turned away since the last one that was let through. */
  turnedAway: number
}

/** An answer to a request: the wait in ms, or 0 and how many of its address were turned away before it. */
interface Admission {
  readonly wait_ms: number
  readonly turnedAway: number
}

/** One end of a connection, which a TLS socket shares with the one below it. */
const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress ?? ""} ${remotePort ?? ""}`

/** Beyond UNAUTHENTICATED_ADDRESSES_MAX addresses those that have rested are forgotten; if none has, further ones share one count. */
export const makeUnauthenticatedConnections = (now_ms: number) => {
  const fresh = (at_ms: number): Counted => ({ bucket: { tokens: RATE.burst, at_ms }, turnedAway: 0 })
  const others = fresh(now_ms)
  const byAddress = new Map<string, Counted>()
  const connections = new Map<string, Socket>()

  const counted = (address: string, now_ms: number): Counted => {
    const known = byAddress.get(address)
    if (known !== undefined) return known
    if (byAddress.size >= UNAUTHENTICATED_ADDRESSES_MAX)
      for (const [each, { bucket }] of byAddress) if (now_ms - bucket.at_ms >= REST_MS) byAddress.delete(each)
    if (byAddress.size >= UNAUTHENTICATED_ADDRESSES_MAX) return others
    const first = fresh(now_ms)
    byAddress.set(address, first)
    return first
  }

  return {
    /** Counts a request. */
    admit: (address: string, now_ms: number): Admission => {
      const entry = counted(address, now_ms)
      const [bucket, wait_ms] = take(entry.bucket, RATE, now_ms)
      entry.bucket = bucket
      const { turnedAway } = entry
      entry.turnedAway = wait_ms === 0 ? 0 : turnedAway + 1
      return { wait_ms, turnedAway: wait_ms === 0 ? turnedAway : 0 }
    },
    /** Registers a connection that proved nothing yet. It may close the oldest such one, never one that proved a session. */
    connected: (connection: Socket) => {
      const end = endOf(connection)
      const [oldest] = connections
      if (connections.size >= UNAUTHENTICATED_CONNECTIONS_MAX && oldest !== undefined) {
        connections.delete(oldest[0])
        oldest[1].destroy()
      }
      connections.set(end, connection)
      connection.once("close", () => {
        if (connections.get(end) === connection) connections.delete(end)
      })
    },
    /** Exempts a connection that proved a session. */
    proved: (connection: Socket) => void connections.delete(endOf(connection)),
    addresses: () => byAddress.size
  }
}
