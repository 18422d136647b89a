/**
 * The addresses of `runtime.allow` (D22). choird looks the names up for the containers, which must not do so themselves: a query for a name
 * is a way out, too. An address that is not public is dropped, so that no owner of a name can point it at this network.
 */
import { lookup } from "node:dns/promises"
import { Context, Effect } from "effect"
import { type AllowedPlace, allowedPlace } from "#schema/AllowedHost.ts"
import { type AllowedAddress, isPublic } from "#src/shared/wire/egress.ts"

/** Time for the look-up of a name in `runtime.allow`. */
const EGRESS_LOOKUP_MS_MAX = 5000
/** Names that are looked up at once. */
const EGRESS_LOOKUPS_IN_FLIGHT_MAX = 8
/** Addresses of one listed name that stay open while choird runs; the oldest close first. */
export const EGRESS_ADDRESSES_MAX = 64

/** The IPv4 addresses of a name; empty where it has none or nobody answers. */
export type LookUp = (name: string) => Effect.Effect<ReadonlyArray<string>>

const bySystem: LookUp = (name) =>
  Effect.tryPromise(() => lookup(name, { all: true, family: 4 })).pipe(
    Effect.map((found) => found.map(({ address }) => address)),
    Effect.timeout(EGRESS_LOOKUP_MS_MAX),
    Effect.orElseSucceed(() => [])
  )

/** The look-up of names, the host's own by default. */
export const NameLookUp = Context.Reference<LookUp>("choir/choird/runtime/docker/NameLookUp", {
  defaultValue: () => bySystem
})

export interface AllowedHosts {
  /** Looks every name up again; a name without an answer keeps its addresses. */
  readonly refresh: Effect.Effect<void>
  /** All addresses that containers of this choird were given, since they keep them. */
  readonly allowed: () => ReadonlyArray<AllowedAddress>
  /** Lines for a container's /etc/hosts, `name:address`, of the newest answers. */
  readonly hosts: () => ReadonlyArray<string>
  /** Sentences for an operator about listed names that cannot be reached. */
  readonly problems: () => ReadonlyArray<string>
}

interface Known {
  newest: ReadonlyArray<string>
  readonly ever: Set<string>
  problem: string | undefined
}

export const makeAllowedHosts = (look_up: LookUp, entries: ReadonlyArray<string>): AllowedHosts => {
  const places = entries.map(allowedPlace).filter((place): place is AllowedPlace => typeof place === "object")
  const names = new Map<string, Known>(
    places.flatMap(({ host, is_address }) =>
      is_address ? [] : [[host, { newest: [], ever: new Set<string>(), problem: undefined }]]
    )
  )

  const learn = (name: string, known: Known, answer: ReadonlyArray<string>) => {
    const reachable = [...new Set(answer)].filter(isPublic)
    const refused = answer.filter((address) => !isPublic(address))
    known.problem =
      refused.length > 0
        ? `${name} of runtime.allow has the address ${refused[0]}, which is not public: it is left out. List the address itself to let agents reach it`
        : reachable.length === 0
          ? `${name} of runtime.allow could not be looked up`
          : undefined
    if (reachable.length > 0) known.newest = reachable
    for (const address of reachable) {
      known.ever.delete(address)
      known.ever.add(address)
    }
    for (const address of known.ever) if (known.ever.size > EGRESS_ADDRESSES_MAX) known.ever.delete(address)
  }

  return {
    refresh: Effect.forEach(
      names,
      ([name, known]) => Effect.map(look_up(name), (answer) => learn(name, known, answer)),
      { concurrency: EGRESS_LOOKUPS_IN_FLIGHT_MAX, discard: true }
    ),
    allowed: () =>
      places.flatMap(({ host, is_address, port }) =>
        (is_address ? [host] : [...(names.get(host)?.ever ?? [])]).map((address) => ({
          address,
          port,
          is_written: is_address
        }))
      ),
    hosts: () => [...names].flatMap(([name, { newest }]) => newest.map((address) => `${name}:${address}`)),
    problems: () => [...names.values()].flatMap(({ problem }) => (problem === undefined ? [] : [problem]))
  }
}
