import { existsSync, mkdirSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { HttpClient, HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  BODY_BYTES_MAX,
  HTTP_HEADER_BYTES_MAX,
  type HttpApp,
  listen,
  type ListenOptions,
  refusalResponse
} from "#src/shared/wire/http.ts"
import { layerSocketClient, SOCKET_PATH_BYTES_MAX } from "#src/shared/wire/sockets.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { ask, dial, refusalOf, until, untilClosed } from "../../support/unixHttp.ts"

type Places = [string, string, string, string]

const echo: HttpApp = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  return HttpServerResponse.text(yield* request.text)
})

const serve = (app: HttpApp, options: Partial<ListenOptions> = {}) =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "s", "choird.sock")
    yield* listen(app, { path, connectionsMax: 8, ...options })
    return path
  })

describe("listen", () => {
  it.effect("serves on a socket 0600 in a folder 0700 and removes it at the end", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "s", "choird.sock")
      const scope = yield* Scope.make()
      yield* Scope.provide(listen(echo, { path, connectionsMax: 8 }), scope)
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(path, "..")).mode & 0o777, 0o700)
      assert.strictEqual((yield* ask(path, { path: "/", body: "hi" })).text, "hi")
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(existsSync(path))
    })
  )

  it.effect("takes the place of a dead process's socket, and of nothing else", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [live, dead, file, link] = ["live", "dead", "file", "link"].map((name) => join(folder, name)) as Places
      const bound = (path: string) =>
        Effect.callback<Server>((resume) => {
          const server = createServer().listen(path, () => resume(Effect.succeed(server)))
        })
      const opened = (path: string) => Effect.scoped(listen(echo, { path, connectionsMax: 8 }))
      const killed = yield* bound(live)
      // Its server removes the name it was given, so under another name the socket stays as after a kill.
      renameSync(live, dead)
      killed.close()
      yield* Effect.acquireRelease(bound(live), (server) => Effect.sync(() => server.close()))
      writeFileSync(file, "x")
      symlinkSync(dead, link)
      yield* opened(dead)
      assert.strictEqual((yield* Effect.flip(opened(live))).reason, "answered")
      assert.strictEqual((yield* Effect.flip(opened(file))).reason, "not_a_socket")
      assert.strictEqual((yield* Effect.flip(opened(link))).reason, "not_a_socket")
      assert.isTrue(existsSync(file))
    })
  )

  it.effect("refuses a path that the kernel would cut short", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "x".repeat(SOCKET_PATH_BYTES_MAX))
      mkdirSync(folder)
      const refused = yield* Effect.flip(Effect.scoped(listen(echo, { path: join(folder, "s"), connectionsMax: 8 })))
      assert.strictEqual(refused.reason, "too_long")
    })
  )

  it.effect("answers 413 to a body over 1 MiB and takes one of just that (R47)", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo)
      const most = yield* ask(path, { path: "/", body: Buffer.alloc(BODY_BYTES_MAX, 97) })
      assert.strictEqual(most.status, 200)
      const over = yield* ask(path, { path: "/", body: Buffer.alloc(BODY_BYTES_MAX + 1, 97) })
      assert.strictEqual(over.status, 413)
      assert.strictEqual(refusalOf(over).type, "TOO_LARGE")
    })
  )

  it.effect("answers 431 to a head over 16 KiB (R47)", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo)
      const over = yield* ask(path, { path: "/", headers: { "x-long": "a".repeat(HTTP_HEADER_BYTES_MAX) } })
      assert.strictEqual(over.status, 431)
      assert.strictEqual(refusalOf(over).type, "BAD_REQUEST")
    })
  )

  it.effect("answers bytes that are not HTTP with 400 and closes", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo)
      const socket = yield* dial(path)
      socket.write("\u0000\u0001 not http\r\n\r\n")
      assert.match(yield* untilClosed(socket), /^HTTP\/1\.1 400 .*"type":"BAD_REQUEST"/su)
    })
  )

  it.effect("cuts the connections beyond the cap and serves the others (R47)", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo, { connectionsMax: 2 })
      const first = yield* dial(path)
      yield* dial(path)
      const third = yield* dial(path)
      assert.strictEqual(yield* untilClosed(third), "")
      first.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nok")
      assert.include(yield* until(first, "ok"), "200 OK")
    })
  )

  it.live("cuts a peer that never sends its head (R47)", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo, { headersMsMax: 100 })
      const silent = yield* dial(path)
      const slow = yield* dial(path)
      slow.write("POST / HTTP/1.1\r\nhost: x\r\nx-a: ")
      const drip = setInterval(() => slow.write("a"), 50)
      slow.once("close", () => clearInterval(drip))
      const [text] = yield* Effect.all([untilClosed(slow), untilClosed(silent)], { concurrency: 2 })
      assert.match(text, /^HTTP\/1\.1 408 /u)
    })
  )

  it.live("makes no more of a stream than a peer takes, and serves the others meanwhile", () =>
    Effect.gen(function* () {
      let made = 0
      const chunk = new Uint8Array(64 * 1024)
      const piece = Effect.sync(() => {
        made += 1
        return chunk
      })
      const app: HttpApp = Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        return url === "/endless"
          ? HttpServerResponse.stream(Stream.forever(Stream.fromEffect(piece)))
          : HttpServerResponse.text("served")
      })
      const path = yield* serve(app)
      const silent = yield* dial(path)
      silent.pause().write("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
      let seen = 0
      const stands = Effect.gen(function* () {
        seen = made
        for (let turn = 0; turn < 200; turn += 1) yield* Effect.promise(() => new Promise((next) => setImmediate(next)))
        return made > 0 && made === seen
      })
      yield* Effect.repeat(stands, { until: (is) => is })
      assert.isBelow(made, 200)
      assert.strictEqual((yield* ask(path, { path: "/" })).text, "served")
    })
  )

  it.effect("answers a defect with a bare 500 and a failure of the app likewise", () =>
    Effect.gen(function* () {
      const died = yield* ask(yield* serve(Effect.die(new Error("postgres://user:secret@host"))), { path: "/" })
      assert.strictEqual(died.status, 500)
      assert.deepStrictEqual(Object.keys(refusalOf(died)), ["type", "message"])
      assert.notInclude(died.text, "secret")
      const failed = yield* ask(yield* serve(Effect.fail("x")), { path: "/" })
      assert.strictEqual(failed.status, 500)
    })
  )

  it.effect("tells how long to wait with every 429", () =>
    Effect.gen(function* () {
      const refusal = { status: 429, type: "RATE_LIMITED", message: "wait", retry_after_ms: 1200 }
      const limited = yield* ask(yield* serve(Effect.succeed(refusalResponse(refusal))), { path: "/" })
      assert.strictEqual(limited.headers["retry-after"], "2")
      assert.strictEqual(limited.status, 429)
    })
  )

  it.effect("ignores an Upgrade header", () =>
    Effect.gen(function* () {
      const path = yield* serve(echo)
      const headers = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" }
      assert.strictEqual((yield* ask(path, { path: "/", headers, body: "hi" })).text, "hi")
    })
  )

  it.effect("interrupts what still runs when the scope closes", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const left = yield* Deferred.make<void>()
      const path = join(yield* temporaryFolder, "s", "choird.sock")
      const scope = yield* Scope.make()
      const app = Deferred.succeed(entered, undefined).pipe(
        Effect.andThen(Effect.never),
        Effect.onInterrupt(() => Deferred.succeed(left, undefined)),
        Effect.interruptible
      )
      yield* Scope.provide(listen(app, { path, connectionsMax: 8 }), scope)
      const asked = yield* Effect.forkChild(Effect.exit(ask(path, { path: "/" })))
      yield* Deferred.await(entered)
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.await(left)
      yield* Fiber.join(asked)
    })
  )
})

describe("layerSocketClient", () => {
  it.effect("reads a stream over the socket, whatever host the request names", () =>
    Effect.gen(function* () {
      const parts = Stream.make("a", "b").pipe(Stream.encodeText)
      const path = yield* serve(Effect.succeed(HttpServerResponse.stream(parts)))
      const context = yield* Layer.build(layerSocketClient(path))
      const text = yield* HttpClient.get("http://choird.invalid/x").pipe(
        Effect.flatMap((response) => response.text),
        Effect.provideContext(context)
      )
      assert.strictEqual(text, "ab")
    })
  )
})
