import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule, Schema, SubscriptionRef } from "effect"
import { Config } from "#schema/Config.ts"
import { ConfigStore, type RunningConfig } from "#src/choird/config/ConfigStore.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { serveOfflineModel } from "#demo/offline-model/OfflineModel.ts"

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

const configWith = (endpoints: ReadonlyArray<string>): RunningConfig => ({
  version: 1,
  config: Schema.decodeSync(Config)({
    global_repo: { url: "/tmp/global" },
    models: Object.fromEntries(
      endpoints.map((endpoint, index) => [`m${index}`, { provider: "offline", model: "offline-model", endpoint }])
    )
  })
})

const layerOf = (ref: SubscriptionRef.SubscriptionRef<RunningConfig>) =>
  OfflineModels.layer.pipe(
    Layer.provide(
      Layer.mock(ConfigStore, {
        home: "/nowhere",
        current: SubscriptionRef.get(ref),
        changes: SubscriptionRef.changes(ref)
      })
    )
  )

const started = Effect.fnUntraced(function* (...endpoints: ReadonlyArray<string>) {
  const ref = yield* SubscriptionRef.make(configWith(endpoints))
  const context = yield* Layer.build(layerOf(ref))
  const problems = Effect.provideContext(
    Effect.flatMap(OfflineModels, ({ problems }) => problems),
    context
  )
  return { ref, problems }
})

const models = (endpoint: string) =>
  Effect.tryPromise(async () => (await fetch(`${endpoint}/models`)).text()).pipe(
    Effect.filterOrFail((text) => text.includes("offline-model"))
  )

/** Retries for a while: the processes are real. */
const eventually = Effect.retry(Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(400)]))

const processesAt = (port: number) =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
        return words.some((word) => word.includes("offline-model")) && words.includes(String(port))
      } catch {
        return false
      }
    })
    .map(Number)

describe("OfflineModels", () => {
  it.live("serves the model before choird goes on, starts it again when it is killed, and ends it with the scope", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const endpoint = `http://127.0.0.1:${port}/v1`
      yield* Effect.gen(function* () {
        const { problems } = yield* started(endpoint)
        yield* models(endpoint)
        const [pid = 0] = processesAt(port)
        process.kill(pid, "SIGKILL")
        yield* eventually(Effect.suspend(() => (processesAt(port).includes(pid) ? Effect.fail("alive") : Effect.void)))
        yield* eventually(models(endpoint))
        assert.notInclude(processesAt(port), pid)
        yield* eventually(Effect.filterOrFail(problems, (all) => all.length === 0))
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(processesAt(port), [])
    })
  )

  it.live("says who stands in the way when another program has the port, and serves once it is gone", () =>
    Effect.gen(function* () {
      const other = createServer((_, response) => void response.end("<html>"))
      yield* Effect.callback<void>((resume) => void other.listen(0, "127.0.0.1", () => resume(Effect.void)))
      const { port } = other.address() as AddressInfo
      const endpoint = `http://127.0.0.1:${port}/v1`
      const ref = yield* SubscriptionRef.make(configWith([]))
      const context = yield* Layer.build(layerOf(ref))
      yield* SubscriptionRef.set(ref, configWith([endpoint]))
      const problems = Effect.provideContext(
        Effect.flatMap(OfflineModels, ({ problems }) => problems),
        context
      )
      const [problem] = yield* eventually(Effect.filterOrFail(problems, (all) => all.length > 0))
      assert.include(problem, endpoint)
      assert.match(problem ?? "", /another program uses port/u)
      other.closeAllConnections()
      other.close()
      yield* eventually(models(endpoint))
      assert.deepStrictEqual(yield* eventually(Effect.filterOrFail(problems, (all) => all.length === 0)), [])
    }).pipe(Effect.scoped)
  )

  it.live("uses the offline model of another choird, and starts none for other providers", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel({ host: "127.0.0.1", port: 0 })
      const { problems } = yield* started(endpoint)
      assert.deepStrictEqual(yield* problems, [])
      assert.deepStrictEqual(processesAt(Number(new URL(endpoint).port)), [])
    }).pipe(Effect.scoped)
  )

  it.live("ends a model that config.json has no longer", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const endpoint = `http://127.0.0.1:${port}/v1`
      const { ref } = yield* started(endpoint)
      yield* models(endpoint)
      yield* SubscriptionRef.set(ref, configWith([]))
      yield* eventually(Effect.suspend(() => (processesAt(port).length > 0 ? Effect.fail("still there") : Effect.void)))
    }).pipe(Effect.scoped)
  )
})
