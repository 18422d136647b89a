/** A look at what a test leaves, for suites whose installations have canaries (R32). */
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../engines.ts"
import { makeSearch } from "./search.ts"
import type { Canary } from "./secrets.ts"
import { makeEvidence, searchContainers, searchHome, searchReceived } from "./sinks.ts"

interface Leftovers {
  readonly home: string
  readonly docker_socket: string
  readonly canaries: ReadonlyArray<Canary>
  /** What models were asked. */
  readonly asked: ReadonlyArray<{ readonly body: unknown }>
}

/**
 * Dies when a secret is in a file of the home, with the engine, or in what models were asked. An embedded database is searched as the
 * files that it is; what is in its tables is read by the suite of canaries alone.
 */
export const assertNothingShows = Effect.fnUntraced(function* ({ asked, canaries, docker_socket, home }: Leftovers) {
  const search = yield* makeSearch(canaries)
  const keep = makeEvidence(join(yield* temporaryFolder, "evidence"))
  const found = {
    ...searchHome(search, keep, home, []),
    ...searchContainers(search, keep, docker_socket, home),
    ...searchReceived(search, keep, { "requests to models": asked.map(({ body }) => body) })
  }
  assert.deepStrictEqual(
    Object.entries(found).flatMap(([sink, hits]) => hits.map(({ canary, form }) => `${sink}: ${canary}, ${form}`)),
    []
  )
}, Effect.scoped)
