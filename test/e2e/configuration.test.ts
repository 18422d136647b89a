import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Schedule, Stream } from "effect"
import { describeInstallations } from "../support/everyInstallation.ts"
import { makeInstallation } from "../support/installation.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools, makeProvider, offlineModel } from "../support/testing/Provider.ts"

/** Longer than any of these tests takes: what arrives does not wait for a heartbeat. */
const INTERVAL_MS = 60_000

/** A running agent whose model has a key, and heartbeats as far apart as by default. */
const make = (place: Parameters<Parameters<typeof describeInstallations>[1]>[0]) =>
  Effect.gen(function* () {
    const provider = yield* makeProvider
    yield* provider.otherwise((request) => offlineModel(request, 0))
    const { endpoint } = provider
    const models = { test: { provider: "test", model: "offline-model", endpoint, temperature: 0, secret: "key" } }
    const where = yield* place
    const choir = yield* makeInstallation({
      ...where,
      endpoint,
      secrets: { ...where.secrets, key: "first-canary" },
      config: { models, heartbeat_interval_ms: INTERVAL_MS, crash_detection_threshold_ms: 2 * INTERVAL_MS }
    })
    /** What secrets.json holds of the test's own from now on. */
    const secrets = (own: object) =>
      writeFileSync(join(choir.home, "secrets.json"), JSON.stringify({ ...where.secrets, ...own }))
    yield* choir.start
    yield* choir.build
    yield* choir.api.agents.start({ params: choir.params, payload: {} })
    const talk = (id: string, text: string) =>
      Effect.flatMap(choir.send(id, text), ({ inbox_id }) => choir.settled(inbox_id))
    const keys = Effect.map(provider.requests.all, (all) =>
      all.map(({ headers }) => (headers as Readonly<Record<string, string>>)["authorization"])
    )
    const current = Effect.repeat(choir.api.agents.status({ params: choir.params }), {
      until: ({ config_version_latest }) => config_version_latest === undefined,
      schedule: Schedule.spaced("20 millis")
    }).pipe(Effect.timeout(2 * INTERVAL_MS))
    return { ...choir, current, keys, provider, secrets, talk }
  })

class Choir extends Context.Service<Choir, Effect.Success<ReturnType<typeof make>>>()("choir/test/ChangedChoir") {}

describeInstallations("a configuration that changes while an agent works", (place) => {
  layer(Layer.effect(Choir, make(place)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect(
      "a new configuration reaches the agent within two heartbeats and counts for its next model call (R58)",
      () =>
        Effect.gen(function* () {
          const { api, current, home, provider, talk } = yield* Choir
          yield* talk("config-1", "hello")
          const file = join(home, "config.json")
          const config = JSON.parse(readFileSync(file, "utf8"))
          config.models.test.temperature = 0.25
          writeFileSync(file, JSON.stringify(config))
          const last = yield* Stream.runLast(yield* api.configuration.load())
          assert.strictEqual(last._tag === "Some" ? last.value.type : "", "done")
          const { version } = yield* api.configuration.apply()
          assert.strictEqual((yield* current).config_version, version)
          yield* talk("config-2", "hello again")
          const bodies = (yield* provider.requests.all).map(({ body }) => (body as { temperature: number }).temperature)
          assert.strictEqual(bodies[0], 0)
          assert.strictEqual(bodies.at(-1), 0.25)
        })
    )

    it.effect(
      "new secrets: a call under way keeps the old key, every later one has the new, a revoked one is not used (R35)",
      () =>
        Effect.gen(function* () {
          const { api, current, home, keys, provider, secrets, send, settled, talk } = yield* Choir
          const gate = yield* Deferred.make<void>()
          const tool = callTools([{ name: "choir-fs-search", input: { pattern: "nothing" } }])
          const before = (yield* provider.requests.all).length
          yield* provider.script(Effect.andThen(Deferred.await(gate), tool), answer("done"))
          const { inbox_id } = yield* send("secret-1", "begin")
          yield* provider.requests.at(before)
          secrets({ key: "second-canary" })
          const report = yield* api.configuration.applySecrets()
          assert.deepStrictEqual(report.changed, [{ name: "key", change: "changed" }])
          const { config_version } = yield* current
          assert.strictEqual(config_version, report.version)
          yield* Deferred.succeed(gate, undefined)
          yield* settled(inbox_id)
          yield* talk("secret-2", "hello")
          const [first, ...later] = (yield* keys).slice(before)
          assert.strictEqual(first, "Bearer first-canary")
          assert.isAbove(later.length, 1)
          assert.deepStrictEqual([...new Set(later)], ["Bearer second-canary"])

          secrets({})
          yield* api.configuration.applySecrets()
          yield* current
          const asked = (yield* keys).length
          const shown = yield* talk("secret-3", "hello again")
          assert.include(JSON.stringify(shown), "no longer has a value")
          assert.strictEqual((yield* keys).length, asked)
          for (const log of ["choird.log", "demo.log"])
            assert.notMatch(readFileSync(join(home, "logs", log), "utf8"), /canary/u)
        })
    )
  })
})
