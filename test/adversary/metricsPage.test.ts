import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { ConfigStore, SecretMissing } from "#src/choird/config/ConfigStore.ts"
import { layerExporters } from "#src/choird/telemetry/Exporters.ts"
import { layerPrometheus } from "#src/choird/telemetry/Prometheus.ts"
import { temporaryFolder } from "../support/engines.ts"
import { CONFIG } from "../support/stores.ts"
import { ask } from "../support/unixHttp.ts"

const SLOW_HEADS = 400

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? (address?.port ?? 0) : 0)))
  })
})

/** A request whose head never ends. */
const slowHead = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof connect>>((resume) => {
      const socket = connect({ host: "127.0.0.1", port }, () => {
        socket.write("GET /metrics HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        resume(Effect.succeed(socket))
      })
      socket.on("error", () => undefined)
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** A choird's exporters over a home, with what `telemetry.prometheus` says beside the port. */
const exporters = (
  home: string,
  port: number,
  more: object,
  secret: Effect.Effect<Redacted.Redacted, SecretMissing>
) => {
  const config = Schema.decodeUnknownSync(Config)({
    ...CONFIG,
    telemetry: { prometheus: { listen: `127.0.0.1:${port}`, ...more } }
  })
  const store = Layer.mock(ConfigStore, {
    home,
    current: Effect.succeed({ version: 1, config }),
    secret: () => secret
  })
  return Layer.build(layerExporters("0.0.0").pipe(Layer.provide([store, NodeFileSystem.layer])))
}

const noSecret = Effect.die("no secret is named")

const statusWith = (port: number, headers: Readonly<Record<string, string>>) =>
  Effect.map(
    ask({ port }, { method: "GET", path: "/metrics", headers: { host: "localhost", ...headers } }),
    ({ status, text }) => {
      if (status !== 200) assert.notInclude(text, "choir_")
      return status
    }
  )

describe("the page of metrics", () => {
  it.live("tells no local process anything that cannot read the home's token, over restarts of choird", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const home = yield* temporaryFolder
      const file = join(home, "metrics.token")
      const read = () => readFileSync(file, "utf8").trim()
      const life = Effect.scoped(
        Effect.gen(function* () {
          yield* exporters(home, port, {}, noSecret)
          const token = read()
          assert.strictEqual(statSync(file).mode & 0o777, 0o600)
          assert.strictEqual(yield* statusWith(port, {}), 401)
          for (const wrong of [token, `Bearer ${token}x`, "Bearer ", `Basic ${token}`, `bearer  ${token}`])
            assert.strictEqual(yield* statusWith(port, { authorization: wrong }), 401, wrong)
          assert.strictEqual(yield* statusWith(port, { authorization: `Bearer ${token}` }), 200)
          return token
        })
      )
      const first = yield* life
      assert.match(first, /^[0-9a-f]{64}$/u)
      assert.strictEqual(yield* life, first)
      writeFileSync(file, "short\n")
      assert.notStrictEqual(yield* life, "short")
    }).pipe(Effect.scoped)
  )

  it.live("asks for the secret that config.json names, and is not served while that has no value", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const home = yield* temporaryFolder
      const name = SecretName.make("scraper")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* exporters(home, port, { secret: name }, Effect.succeed(Redacted.make("s3cret")))
          assert.strictEqual(yield* statusWith(port, {}), 401)
          assert.strictEqual(yield* statusWith(port, { authorization: "Bearer s3cret" }), 200)
        })
      )
      yield* exporters(home, port, { secret: name }, Effect.fail(new SecretMissing({ secret: name })))
      assert.strictEqual((yield* Effect.flip(statusWith(port, {}))).code, "ECONNREFUSED")
      assert.isFalse(existsSync(join(home, "metrics.token")))
    }).pipe(Effect.scoped)
  )

  it.live("answers the operator's scraper while hundreds of slow requests are open", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      yield* Layer.build(layerPrometheus(`127.0.0.1:${port}`, Redacted.make("right")))
      yield* Effect.forEach(Array.from({ length: SLOW_HEADS }), () => slowHead(port), { concurrency: 20 })
      const page = yield* ask(
        { port },
        { method: "GET", path: "/metrics", headers: { host: "localhost", authorization: "Bearer right" } }
      )
      assert.strictEqual(page.status, 200)
    }).pipe(Effect.scoped)
  )
})
