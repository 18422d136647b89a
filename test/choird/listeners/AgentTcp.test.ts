import { connect as connectTls } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"
import { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { layerEndpointClient } from "#src/shared/wire/endpoints.ts"
import { BODIES, openSessionWith } from "../../support/agentSocket.ts"
import { makeCertificate } from "../../support/certificate.ts"
import { OTHER_SESSION, SESSION } from "../../support/control.ts"
import { ask, dial, type Place, refusalOf, untilClosed } from "../../support/unixHttp.ts"
import {
  UNAUTHENTICATED_CONNECTIONS_MAX,
  UNAUTHENTICATED_REQUESTS_BURST
} from "#src/choird/listeners/UnauthenticatedConnections.ts"
import { AGENT_REQUESTS_BURST } from "#src/choird/listeners/OpenSession.ts"
import { HTTP_HEADER_BYTES_MAX } from "#src/shared/wire/http.ts"

const openTcp = openSessionWith([], "https")

const envelope = (token: string, id: string) => ({
  authorization: `Bearer ${token}`,
  "content-type": "application/json",
  "x-choir-request-id": id,
  "x-choir-session-id": SESSION
})

const report = (place: Place, token: string, headers: Readonly<Record<string, string>> = {}) =>
  ask(place, {
    path: "/rpc/REPORT_STATUS",
    headers: { ...envelope(token, `${token}-${Object.keys(headers).length}`), ...headers },
    body: JSON.stringify(BODIES.REPORT_STATUS)
  })

const portOf = (place: Place) => (typeof place === "string" ? 0 : place.port)

describe("who is answered on TCP at all (threat: a page in the operator's browser)", () => {
  it.effect("refuses every Origin with 403 and every other host's name with 421, with a row of the audit", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openTcp
      for (const origin of ["http://evil.example", "null", "https://localhost:9400", ""]) {
        const answer = yield* report(path, "lease", { origin })
        assert.deepStrictEqual([answer.status, refusalOf(answer).type], [403, "ORIGIN"])
      }
      for (const host of [
        "evil.example",
        "evil.example:9400",
        "127.0.0.2",
        "localhost.evil.example",
        "[::2]:1",
        "x y"
      ]) {
        const answer = yield* report(path, "lease", { host })
        assert.deepStrictEqual([host, answer.status, refusalOf(answer).type], [host, 421, "HOST"])
      }
      assert.deepStrictEqual(world.effects, [])
      assert.lengthOf(world.audit, 10)
      assert.deepInclude(world.audit[0], { who: "address:127.0.0.1", action: "rpc" })
    })
  )

  it.effect("knows its own names, whatever the port and the case", () =>
    Effect.gen(function* () {
      const { path } = yield* openTcp
      for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1:65535", "[::1]:9400"])
        assert.strictEqual((yield* report(path, "lease", { host })).status, 200)
    })
  )
})

describe("who has no valid token on TCP (R47)", () => {
  it.effect("is counted by its address and turned away, which no session notices", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openTcp
      for (let count = 0; count < UNAUTHENTICATED_REQUESTS_BURST; count += 1)
        assert.strictEqual((yield* report(path, "nobody")).status, 401)
      for (let count = 0; count < 3; count += 1) {
        const limited = yield* report(path, "nobody")
        assert.deepStrictEqual([limited.status, limited.headers["retry-after"]], [429, "1"])
      }
      assert.lengthOf(world.audit, UNAUTHENTICATED_REQUESTS_BURST)
      assert.strictEqual((yield* report(path, "lease")).status, 200)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* report(path, "nobody")).status, 401)
      assert.deepStrictEqual(world.audit.at(-2), {
        who: "address:127.0.0.1",
        action: "rpc",
        detail: { refused: "RATE_LIMITED", requests: 3 }
      })
    })
  )

  it.effect("leaves its connection to the next one when there are too many, and agents keep theirs", () =>
    Effect.gen(function* () {
      const { path } = yield* openTcp
      const first = yield* dial(path)
      const cut = yield* Effect.forkChild(untilClosed(first), { startImmediately: true })
      for (let count = 0; count < UNAUTHENTICATED_CONNECTIONS_MAX; count += 1) yield* dial(path)
      yield* Fiber.join(cut)
      assert.strictEqual((yield* report(path, "lease")).status, 200)
    })
  )
})

describe("what a session has on TCP", () => {
  it.effect("is what it has on its socket: rate and request ids (R28, R47)", () =>
    Effect.gen(function* () {
      const { path, socket } = yield* openTcp
      const headers = { "x-choir-request-id": "one" }
      assert.strictEqual((yield* report(socket.path, "lease", headers)).status, 200)
      const other = {
        path: "/rpc/HEARTBEAT",
        headers: envelope("lease", "one"),
        body: JSON.stringify(BODIES.HEARTBEAT)
      }
      assert.strictEqual((yield* ask(path, other)).status, 409)
      for (let count = 2; count < AGENT_REQUESTS_BURST; count += 1)
        yield* report(count % 2 === 0 ? path : socket.path, "lease")
      assert.strictEqual((yield* report(path, "lease")).status, 429)
      assert.strictEqual((yield* report(socket.path, "lease")).status, 429)
    })
  )

  it.effect("is not used up by an agent of an older epoch, which is told that it is fenced (E13)", () =>
    Effect.gen(function* () {
      const { call, path } = yield* openTcp
      for (let count = 0; count < UNAUTHENTICATED_REQUESTS_BURST; count += 1)
        assert.include((yield* call("HEARTBEAT", { token: "older" })).text, "FENCED")
      assert.strictEqual((yield* call("HEARTBEAT", { token: "older" })).status, 429)
      for (let count = 0; count < AGENT_REQUESTS_BURST; count += 1)
        assert.strictEqual((yield* report(path, "lease")).status, 200)
    })
  )

  it.effect("waits for a session that is not open yet, so that the agent of an earlier choird does not end", () =>
    Effect.gen(function* () {
      const { certificate, path, services, world } = yield* openTcp
      const headers = { "x-choir-session-id": OTHER_SESSION }
      const answer = yield* report(path, "stranger", headers)
      assert.deepStrictEqual([answer.status, refusalOf(answer).type], [429, "RATE_LIMITED"])
      const events = { path: `/events?session_id=${OTHER_SESSION}`, headers: envelope("stranger", "one") }
      assert.strictEqual((yield* ask(path, { ...events, method: "GET" })).status, 429)
      assert.deepStrictEqual(world.effects, [])
      const client = yield* Layer.build(
        layerEndpointClient({ url: `https://127.0.0.1:${portOf(path)}`, ca: certificate?.cert })
      )
      const plane = yield* ControlPlane.pipe(
        Effect.provide(ControlPlane.layer(OTHER_SESSION, Redacted.make("stranger"))),
        Effect.provideContext(client)
      )
      assert.strictEqual((yield* Effect.flip(plane.heartbeat({ ...BODIES.HEARTBEAT }, 5000)))._tag, "Unreachable")
      yield* Context.get(services, AgentSockets).open(OTHER_SESSION)
      assert.strictEqual((yield* report(path, "stranger", headers)).status, 200)
    })
  )

  it.effect("ends with the session: its connections are cut, and a revoked token opens nothing", () =>
    Effect.gen(function* () {
      const { path, services, world } = yield* openTcp
      world.tokens.set("second", {
        session_id: OTHER_SESSION,
        agent_id: world.view.agent_id,
        epoch: 1,
        standing: "current"
      })
      const scope = yield* Scope.make()
      yield* Context.get(services, AgentSockets).open(OTHER_SESSION).pipe(Scope.provide(scope))
      const stream = yield* dial(path)
      const head = ["host: localhost", "authorization: Bearer second"].join("\r\n")
      const all = yield* Effect.forkChild(untilClosed(stream), { startImmediately: true })
      stream.write(`GET /events?session_id=${OTHER_SESSION} HTTP/1.1\r\n${head}\r\n\r\n`)
      yield* report(path, "second", { "x-choir-session-id": OTHER_SESSION })
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(all)
      assert.strictEqual((yield* report(path, "second", { "x-choir-session-id": OTHER_SESSION })).status, 429)
      world.tokens.delete("second")
      assert.strictEqual((yield* report(path, "second", { "x-choir-session-id": OTHER_SESSION })).status, 401)
    })
  )
})

describe("TLS", () => {
  const handshake = (port: number, ca: string, maxVersion: "TLSv1.1" | "TLSv1.2" | "TLSv1.3") =>
    Effect.callback<string | null>((resume) => {
      const options = { ciphers: "DEFAULT:@SECLEVEL=0", minVersion: "TLSv1" as const, maxVersion }
      const socket = connectTls({ host: "127.0.0.1", port, ca, ...options }, () => {
        resume(Effect.succeed(socket.getProtocol()))
        socket.destroy()
      })
      socket.once("error", () => resume(Effect.succeed("refused")))
    })

  it.effect("is spoken from version 1.2 on, and plain HTTP is cut without a word", () =>
    Effect.gen(function* () {
      const { path } = yield* openTcp
      const place = path as { readonly port: number; readonly ca: string }
      assert.strictEqual(yield* handshake(place.port, place.ca, "TLSv1.1"), "refused")
      assert.strictEqual(yield* handshake(place.port, place.ca, "TLSv1.2"), "TLSv1.2")
      assert.strictEqual(yield* handshake(place.port, place.ca, "TLSv1.3"), "TLSv1.3")
      const plain = yield* dial({ port: place.port })
      plain.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
      assert.strictEqual(yield* untilClosed(plain), "")
    })
  )

  it.effect("answers 431 to a head over 16 KiB (R47)", () =>
    Effect.gen(function* () {
      const { path } = yield* openTcp
      const over = yield* report(path, "lease", { "x-long": "a".repeat(HTTP_HEADER_BYTES_MAX) })
      assert.strictEqual(over.status, 431)
    })
  )

  it.live("is trusted by an agent for the one certificate that it was given, and no other", () =>
    Effect.gen(function* () {
      const { certificate, path } = yield* openTcp
      const other = yield* makeCertificate
      const url = `https://127.0.0.1:${portOf(path)}`
      const get = (ca: string | undefined, endpoint = url) =>
        Effect.flatMap(Layer.build(layerEndpointClient({ url: endpoint, ca })), (client) =>
          HttpClient.get("http://choird/nothing").pipe(
            Effect.map(({ status }) => status),
            Effect.provideContext(client)
          )
        ).pipe(Effect.catch(({ message }) => Effect.succeed(message)))
      assert.strictEqual(yield* get(certificate?.cert), 404)
      assert.strictEqual(yield* get(certificate?.cert, url.replace("127.0.0.1", "localhost")), 404)
      const reached = yield* Layer.build(layerEndpointClient({ url, ca: certificate?.cert }))
      const plane = yield* ControlPlane.pipe(
        Effect.provide(ControlPlane.layer(SESSION, Redacted.make("lease"))),
        Effect.provideContext(reached)
      )
      assert.deepInclude(yield* plane.config(1), { config_version: 1 })
      assert.include(yield* get(other.cert), "Transport")
      assert.include(yield* get(certificate?.cert, url.replace("127.0.0.1", "127.0.0.2")), "Transport")
      assert.include(yield* get(undefined), "https needs the certificate to trust (--ca)")
      assert.include(yield* get("/nowhere/ca.pem"), "/nowhere/ca.pem cannot be read")
      assert.include(yield* get(undefined, "http://192.0.2.1:9400"), "http is allowed only for loopback addresses")
      for (const odd of ["ftp://127.0.0.1", "127.0.0.1:9400", `${url}/path`, "https://user:pass@127.0.0.1"])
        assert.include(yield* get(certificate?.cert, odd), "it must be https://HOST:PORT")
    })
  )
})
