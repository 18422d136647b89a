import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schedule, Schema, SubscriptionRef } from "effect"
import { Config } from "#schema/Config.ts"
import { ConfigStore, type RunningConfig } from "#src/choird/config/ConfigStore.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { NOWHERE, OfflineAddress, withOfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"

const configWith = (...endpoints: ReadonlyArray<string>): RunningConfig => ({
  version: 1,
  config: Schema.decodeSync(Config)({
    global_repo: { url: "/tmp/global" },
    models: Object.fromEntries(
      endpoints.map((endpoint, index) => [`m${index}`, { provider: "offline", model: "offline-model", endpoint }])
    )
  })
})

/** What homes of older versions have, and what new ones have. */
const OLD = "http://127.0.0.1:9411/v1"
const NEW = "http://127.0.0.1:0/v1"

/** One choird's offline model, and the address that its agents get. */
const started = Effect.fnUntraced(function* (...endpoints: ReadonlyArray<string>) {
  const ref = yield* SubscriptionRef.make(configWith(...endpoints))
  const store = Layer.mock(ConfigStore, {
    home: "/nowhere",
    current: SubscriptionRef.get(ref),
    changes: SubscriptionRef.changes(ref)
  })
  const context = yield* Layer.build(Layer.provide(OfflineModels.layer, store))
  const { problems } = Context.get(context, OfflineModels)
  /** The endpoint of a model in an agent's share. */
  const given = Effect.gen(function* () {
    const { config } = yield* SubscriptionRef.get(ref)
    const share = agentConfig(config, { llm: "m0", core_llm: "m0", workspace: "w" } as never)
    return (yield* withOfflineAddress(share)).models["m0" as never]?.["endpoint"] ?? ""
  }).pipe(Effect.provideContext(context))
  return { ref, problems, given, address: Context.get(context, OfflineAddress) }
})

const ask = (endpoint: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(`${endpoint}/models`)
    return { status: response.status, text: await response.text() }
  })

/** Retries for a while: the processes are real. */
const eventually = Effect.retry(Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(400)]))

/** The processes of offline models that this test's process has started. */
const children = () =>
  readdirSync("/proc").flatMap((name) => {
    try {
      const [, parent] = /\) \S (\d+)/u.exec(readFileSync(`/proc/${name}/stat`, "utf8")) ?? []
      const isOne = readFileSync(`/proc/${name}/cmdline`, "utf8").includes("offline-model")
      return isOne && Number(parent) === process.pid ? [Number(name)] : []
    } catch {
      return []
    }
  })

const gone = (pid: number) =>
  eventually(Effect.suspend(() => (children().includes(pid) ? Effect.fail("alive") : Effect.void)))

/** Tries to take a port of this host, as another user's program would. */
const takePort = (port: number) =>
  Effect.callback<string>((resume) => {
    const server = createServer()
    server.once("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? "")))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed("taken"))))
  })

describe("OfflineModels", () => {
  it.live("serves the model before choird goes on, at a port of its own and only below a key of its own", () =>
    Effect.gen(function* () {
      yield* Effect.gen(function* () {
        const { address, given, problems } = yield* started(OLD)
        const endpoint = yield* given
        assert.match(endpoint, /^http:\/\/127\.0\.0\.1:[1-9]\d*\/[\w-]{43}\/v1$/u)
        assert.strictEqual(yield* address, endpoint)
        assert.notStrictEqual(new URL(endpoint).port, "9411")
        const answer = yield* ask(endpoint)
        assert.strictEqual(answer.status, 200)
        assert.include(answer.text, '"offline-model"')
        const { origin } = new URL(endpoint)
        assert.strictEqual((yield* ask(`${origin}/v1`)).status, 404)
        const other = yield* started(NEW)
        const second = yield* other.given
        assert.notStrictEqual(new URL(second).port, new URL(endpoint).port)
        assert.strictEqual((yield* ask(`${origin}${new URL(second).pathname}`)).status, 404)
        assert.deepStrictEqual(yield* problems, [])
        // Nobody reads the key from a command line.
        for (const pid of children())
          assert.notInclude(
            readFileSync(`/proc/${pid}/cmdline`, "utf8"),
            new URL(endpoint).pathname.split("/")[1] ?? ""
          )
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(children(), [])
    })
  )

  it.live(
    "keeps its port while a killed model restarts, so that nobody takes it, and answers who asked meanwhile",
    () =>
      Effect.gen(function* () {
        const { given, problems } = yield* started(NEW)
        const endpoint = yield* given
        const [pid = 0] = children()
        process.kill(pid, "SIGKILL")
        yield* gone(pid)
        assert.strictEqual(yield* takePort(Number(new URL(endpoint).port)), "EADDRINUSE")
        assert.strictEqual((yield* ask(endpoint)).status, 200)
        assert.strictEqual(yield* given, endpoint)
        assert.notInclude(children(), pid)
        assert.deepStrictEqual(yield* problems, [])
      }).pipe(Effect.scoped)
  )

  it.live("never adopts a server that it did not start, and sends agents to none of config.json's ports", () =>
    Effect.gen(function* () {
      let asked = 0
      const squatter = createServer((_, response) => {
        asked += 1
        response.end('{"object":"list","data":[{"id":"offline-model"}]}')
      })
      yield* Effect.callback<void>((resume) => void squatter.listen(0, "127.0.0.1", () => resume(Effect.void)))
      yield* Effect.addFinalizer(() => Effect.sync(() => squatter.close()))
      const { port } = squatter.address() as AddressInfo
      const { given } = yield* started(`http://127.0.0.1:${port}/v1`)
      assert.notStrictEqual(new URL(yield* given).port, String(port))
      assert.strictEqual((yield* ask(yield* given)).status, 200)
      assert.strictEqual(asked, 0)
    }).pipe(Effect.scoped)
  )

  it.live("starts with a configuration that has the model first, and ends with one that has none", () =>
    Effect.gen(function* () {
      const { ref } = yield* started()
      assert.deepStrictEqual(children(), [])
      yield* SubscriptionRef.set(ref, configWith(OLD))
      yield* eventually(Effect.suspend(() => (children().length === 1 ? Effect.void : Effect.fail("none"))))
      yield* SubscriptionRef.set(ref, configWith("http://192.0.2.1:9411/v1"))
      yield* eventually(Effect.suspend(() => (children().length > 0 ? Effect.fail("still there") : Effect.void)))
    }).pipe(Effect.scoped)
  )

  it.effect("leaves models elsewhere alone, and sends nobody to a port that choird does not hold", () =>
    Effect.gen(function* () {
      const share = (endpoint: string) =>
        agentConfig(configWith(endpoint).config, { llm: "m0", core_llm: "m0", workspace: "w" } as never)
      const endpointOf = (endpoint: string) =>
        Effect.map(withOfflineAddress(share(endpoint)), ({ models }) => models["m0" as never]?.["endpoint"])
      assert.strictEqual(yield* endpointOf("http://192.0.2.1:9411/v1"), "http://192.0.2.1:9411/v1")
      assert.strictEqual(yield* endpointOf(OLD), NOWHERE)
    })
  )
})
