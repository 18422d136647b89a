/** The leases of the browser's proxy: who may use it, with which token, and how much of it each page has had. */
import { randomBytes } from "node:crypto"
import type { Socket } from "node:net"
import type { Readable } from "node:stream"
import { Effect, Redacted, type Scope } from "effect"

/** Connections of one lease. */
export const LEASE_CONNECTIONS_MAX = 64
/** Bytes that a lease may receive for one page (R73). */
export const PAGE_BYTES_MAX = 10 * 1024 * 1024
/** Bytes that a lease may send for one page. */
const PAGE_SENT_BYTES_MAX = 1024 * 1024
/** Refusals that a lease remembers, for the words about a page. */
const REFUSALS_MAX = 8

/** The right to use the proxy, for one agent's pages. */
export interface ProxyLease {
  readonly username: string
  readonly password: Redacted.Redacted
  /** Begins a page: its bytes are counted from zero, and its refusals are new. */
  renew(): void
  /** The refusals since the page began, in words. */
  refusals(): ReadonlyArray<string>
}

const USERNAME = "choir"

/** The use of one agent's pages so far. */
export interface Lease {
  readonly connections: Set<Socket>
  readonly refusals: Set<string>
  received: number
  sent: number
}

/** Remembers why something was refused. */
export const note = (lease: Lease, words: string) => {
  if (lease.refusals.size < REFUSALS_MAX) lease.refusals.add(words)
}

/** Whether a page has had all the bytes that it may have. */
export const isSpent = ({ received, sent }: Lease) => received > PAGE_BYTES_MAX || sent > PAGE_SENT_BYTES_MAX

const TOO_MUCH = `the page was cut after ${PAGE_BYTES_MAX / 1024 / 1024} MiB`
const SENT_TOO_MUCH = `the page wanted to send more than ${PAGE_SENT_BYTES_MAX / 1024 / 1024} MiB`

/** Counts what comes from `from`, a site or a page, and calls `cut` when it is too much. */
export const meter = (lease: Lease, direction: "received" | "sent", from: Readable, cut: () => void) => {
  from.on("data", (chunk: Buffer) => {
    lease[direction] += chunk.length
    if (!isSpent(lease)) return
    note(lease, direction === "received" ? TOO_MUCH : SENT_TOO_MUCH)
    cut()
  })
}

export type ProxyLeases = ReturnType<typeof makeProxyLeases>

export const makeProxyLeases = () => {
  const leases = new Map<string, Lease>()

  /** The lease of these credentials. */
  const find = (header = ""): Lease | undefined => {
    const [scheme, value = ""] = header.split(" ")
    if (scheme?.toLowerCase() !== "basic") return undefined
    const [user, token] = Buffer.from(value, "base64").toString().split(":")
    return user === USERNAME && token !== undefined ? leases.get(token) : undefined
  }

  /** Holds a connection of a lease until it closes; false where it has too many. */
  const hold = (lease: Lease, client: Socket): boolean => {
    if (lease.connections.has(client)) return true
    if (lease.connections.size >= LEASE_CONNECTIONS_MAX) return false
    lease.connections.add(client)
    client.once("close", () => lease.connections.delete(client))
    return true
  }

  const open: Effect.Effect<ProxyLease, never, Scope.Scope> = Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const token = randomBytes(24).toString("hex")
        const lease: Lease = { connections: new Set(), refusals: new Set(), received: 0, sent: 0 }
        leases.set(token, lease)
        return { token, lease }
      }),
      ({ lease, token }) =>
        Effect.sync(() => {
          leases.delete(token)
          for (const connection of lease.connections) connection.destroy()
        })
    ),
    ({ lease, token }): ProxyLease => ({
      username: USERNAME,
      password: Redacted.make(token),
      renew: () => {
        lease.received = 0
        lease.sent = 0
        lease.refusals.clear()
      },
      refusals: () => [...lease.refusals]
    })
  )

  return { find, hold, open }
}
