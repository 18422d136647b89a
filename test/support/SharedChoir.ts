/** One installation for the tests of a suite. Each test has a session and an empty workspace of its own; programs may die in it. */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Scope } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { assertNothingShows } from "./canary/leftovers.ts"
import type { Place } from "./everyInstallation.ts"
import { type InstallationOptions, makeInstallation } from "./installation.ts"
import { onTestDatabase } from "./testInstallation.ts"
import type { Journal } from "./testing/Journal.ts"
import { makeProvider, offlineModel } from "./testing/Provider.ts"

/** Entries from this index on, as a journal of their own. */
const journalFrom = <A>({ all, at, first }: Journal<A>, index: number): Journal<A> => ({
  all: Effect.map(all, (entries) => entries.slice(index)),
  at: (later) => at(index + later),
  first: (fits, later = 0) => first(fits, index + later)
})

type Shared = Place & Pick<InstallationOptions, "tools">

const make = Effect.fnUntraced(function* (place: Effect.Effect<Shared, never, Scope.Scope>) {
  const suite = yield* Effect.scope
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const { canaries, ...where } = yield* place
  const { start, ...choir } = yield* makeInstallation({ endpoint: provider.endpoint, ...where })
  const { api, build, home, params, send, settled, workspace } = choir
  const docker_socket = typeof where.runtime === "object" ? where.runtime.docker_socket : undefined

  /** choird's newest process, which dies with the suite. */
  let choird = yield* start
  const startAgain = Effect.map(Scope.provide(start, suite), (started) => {
    choird = started
    return started
  })
  yield* build

  const nothingShows =
    canaries === undefined || docker_socket === undefined
      ? Effect.void
      : Effect.flatMap(provider.requests.all, (asked) => assertNothingShows({ asked, canaries, docker_socket, home }))

  let sent = 0
  const ask = Effect.fnUntraced(function* (text: string) {
    const { inbox_id } = yield* send(`asked-${++sent}`, text)
    return yield* Effect.map(settled(inbox_id), (shown) => ({ inbox_id, shown }))
  })

  /** A running agent in a session that nobody has spoken in; whatever the test before left is gone. */
  const begin = Effect.gen(function* () {
    yield* Effect.catch(api.system.status(), () => startAgain)
    yield* Effect.ignore(api.agents.stop({ params }))
    for (const name of readdirSync(workspace)) rmSync(join(workspace, name), { recursive: true, force: true })
    const log = join(home, "logs/choird.log")
    const from = statSync(log).size
    yield* Effect.addFinalizer(() => nothingShows)
    const asked = yield* provider.requests.all
    const { session_id } = yield* api.agents.start({ params, payload: { fresh: true } })
    return {
      ...choir,
      ask,
      /** Its requests are those of this test. */
      provider: { ...provider, requests: journalFrom(provider.requests, asked.length) },
      session_id: session_id as SessionId,
      start: startAgain,
      choird,
      outlives: docker_socket !== undefined,
      /** What choird has logged since the test began. */
      logged: Effect.sync(() => readFileSync(log).subarray(from).toString("utf8"))
    }
  })
  return { begin }
})

export class SharedChoir extends Context.Service<SharedChoir, Effect.Success<ReturnType<typeof make>>>()(
  "choir/test/SharedChoir"
) {
  static readonly layer = (place: Effect.Effect<Shared, never, Scope.Scope>) => Layer.effect(SharedChoir, make(place))
  /** One that is not about databases. */
  static readonly layerOn = (options: Shared) => SharedChoir.layer(onTestDatabase(options))
}
