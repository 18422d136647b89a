import { once } from "node:events"
import { request } from "node:http"
import { connect, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { isGlobalAddress } from "#src/choird/workers/WebDialer.ts"
import { LEASE_CONNECTIONS_MAX, PAGE_BYTES_MAX, type ProxyLease } from "#src/choird/workers/ProxyLeases.ts"
import { openWebProxy, type WebProxy } from "#src/choird/workers/WebProxy.ts"
import { canary, httpServer, layerDialer, PUBLIC_ADDRESS, rawServer } from "../../support/web.ts"
import { TRICKS } from "./ssrfTricks.ts"

/** Chromium keeps a connection that it has used for so long. */
const CHROMIUM_IDLE_SECONDS = 300

const authorization = ({ password, username }: ProxyLease) =>
  `Basic ${Buffer.from(`${username}:${Redacted.value(password)}`).toString("base64")}`

/** A CONNECT: the status line, and the socket, which the caller has to destroy. */
const tunnel = ({ url }: WebProxy, authority: string, credentials: string | undefined) =>
  Effect.callback<{ readonly status: number; readonly socket: Socket }>((resume) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1")
    const auth = credentials === undefined ? "" : `Proxy-Authorization: ${credentials}\r\n`
    socket.on("error", () => undefined)
    socket.once("data", (data) => resume(Effect.succeed({ status: Number(data.toString().split(" ")[1]), socket })))
    socket.once("close", () => resume(Effect.succeed({ status: 0, socket })))
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${auth}\r\n`)
    return Effect.sync(() => socket.destroy())
  })

const statusOf = (proxy: WebProxy, authority: string, credentials: string | undefined) =>
  Effect.map(tunnel(proxy, authority, credentials), ({ socket, status }) => {
    socket.destroy()
    return status
  })

/** A plain request through the proxy. */
const plain = (
  { url }: WebProxy,
  path: string,
  credentials: string | undefined,
  headers: Record<string, string> = {}
) =>
  Effect.callback<{ readonly status: number; readonly bytes: number; readonly text: string }>((resume) => {
    const sent = request(
      url,
      // As bytes, since Node refuses other letters in a path.
      {
        path: Buffer.from(path).toString("latin1"),
        headers: { ...headers, ...(credentials === undefined ? {} : { "proxy-authorization": credentials }) }
      },
      (answer) => {
        let bytes = 0
        let text = ""
        const end = () => resume(Effect.succeed({ status: answer.statusCode ?? 0, bytes, text }))
        answer.on("data", (chunk: Buffer) => {
          bytes += chunk.length
          if (text.length < 4096) text += chunk.toString()
        })
        answer.once("end", end).once("error", end)
      }
    )
    sent.once("error", () => resume(Effect.succeed({ status: 0, bytes: 0, text: "" })))
    sent.end()
    return Effect.sync(() => sent.destroy())
  })

const site = httpServer((request, response) => {
  if (request.url === "/flood") {
    const chunk = Buffer.alloc(64 * 1024)
    const more = () => {
      while (response.write(chunk));
    }
    response.on("drain", more).on("error", () => undefined)
    more()
  } else response.end(JSON.stringify(request.headers))
})

describe("WebProxy", () => {
  it.effect("reaches nothing but the public network, by no form of an address and by no name (R72)", () =>
    Effect.gen(function* () {
      const trap = yield* canary
      const dialled: Array<string> = []
      const names = Object.fromEntries(
        TRICKS.flatMap(({ answers, host }) => (answers === undefined ? [] : [[host, answers]]))
      )
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const lease = yield* proxy.lease
        assert.isAtLeast(TRICKS.length, 60)
        for (const { host } of TRICKS) {
          // Node cuts a connection whose head has other letters than ASCII.
          assert.include(
            [0, 502],
            yield* statusOf(proxy, `${host}:${trap.port}`, authorization(lease)),
            `CONNECT ${host}`
          )
          const { status } = yield* plain(proxy, `http://${host}:${trap.port}/`, authorization(lease))
          assert.include([0, 400, 502], status, `GET ${host}`)
        }
        assert.strictEqual(trap.hits(), 0)
        // A refusal, and not a place where nobody answers.
        assert.deepStrictEqual(dialled, [])
      }).pipe(Effect.provide(layerDialer({ names, dialled })))
    })
  )

  it.effect("resolves a name once and connects to that very address, whatever the name means afterwards (R72)", () =>
    Effect.gen(function* () {
      const trap = yield* canary
      const port = yield* site
      const asked = new Map<string, number>()
      const web = {
        asked,
        names: {
          "rebind.test": [[PUBLIC_ADDRESS], ["127.0.0.1"]],
          "mixed.test": [["127.0.0.1", PUBLIC_ADDRESS, "::1"]]
        },
        served: { [PUBLIC_ADDRESS]: port }
      }
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const credentials = authorization(yield* proxy.lease)
        assert.strictEqual(yield* statusOf(proxy, `rebind.test:${trap.port}`, credentials), 200)
        assert.strictEqual(asked.get("rebind.test"), 1)
        assert.strictEqual(yield* statusOf(proxy, `rebind.test:${trap.port}`, credentials), 502)
        assert.strictEqual((yield* plain(proxy, `http://mixed.test:${trap.port}/`, credentials)).status, 200)
        assert.strictEqual(trap.hits(), 0)
      }).pipe(Effect.provide(layerDialer(web)))
    })
  )

  for (const answer of [
    "HTTP/1.1 000 X\r\n\r\n",
    "HTTP/1.1 099 X\r\n\r\n",
    "HTTP/1.1 700 X\r\nContent-Length: 0\r\n\r\n",
    "no HTTP at all\r\n\r\n"
  ])
    it.effect(`answers with 502 where a site answers ${JSON.stringify(answer.slice(0, 12))}, and serves the next`, () =>
      Effect.gen(function* () {
        const served = { [PUBLIC_ADDRESS]: yield* rawServer(answer), "93.184.215.15": yield* site }
        const names = { "site.test": [[PUBLIC_ADDRESS]], "sound.test": [["93.184.215.15"]] }
        yield* Effect.gen(function* () {
          const proxy = yield* openWebProxy
          const credentials = authorization(yield* proxy.lease)
          assert.strictEqual((yield* plain(proxy, "http://site.test/", credentials)).status, 502)
          assert.strictEqual((yield* plain(proxy, "http://sound.test/", credentials)).status, 200)
        }).pipe(Effect.provide(layerDialer({ names, served })))
      })
    )

  it.effect("does not reach this machine by its public address", () =>
    Effect.gen(function* () {
      const dialled: Array<string> = []
      const web = { names: { "here.test": [[PUBLIC_ADDRESS]] }, own: [PUBLIC_ADDRESS], dialled }
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const credentials = authorization(yield* proxy.lease)
        for (const place of ["here.test:8080", `${PUBLIC_ADDRESS}:8080`])
          assert.strictEqual(yield* statusOf(proxy, place, credentials), 502)
        assert.deepStrictEqual(dialled, [])
      }).pipe(Effect.provide(layerDialer(web)))
    })
  )

  it.effect("refuses ports of the system, and hosts that an allowlist does not have", () =>
    Effect.gen(function* () {
      const port = yield* site
      const web = {
        names: { "site.test": [[PUBLIC_ADDRESS]], "other.test": [[PUBLIC_ADDRESS]] },
        served: { [PUBLIC_ADDRESS]: port }
      }
      const asks = (place: string) =>
        Effect.gen(function* () {
          const proxy = yield* openWebProxy
          const lease = yield* proxy.lease
          const status = yield* statusOf(proxy, place, authorization(lease))
          return [status, ...lease.refusals()]
        })
      const ports = Effect.all([asks("site.test:22"), asks("site.test:0"), asks("site.test:443")])
      const [ssh, none, https] = yield* Effect.provide(ports, layerDialer(web))
      assert.deepStrictEqual(ssh, [502, "this port is not allowed: use 80, 443 or 1024 and above"])
      assert.deepStrictEqual([none?.[0], https], [502, [200]])
      const listed = { runtime: { network: "allowlist", allow: ["site.test"] } }
      const [one, other] = yield* Effect.provide(
        Effect.all([asks("site.test:443"), asks("other.test:443")]),
        layerDialer(web, listed)
      )
      assert.deepStrictEqual(one, [200])
      assert.deepStrictEqual(other, [
        502,
        "other.test is not in runtime.allow of config.json, and runtime.network is allowlist"
      ])
    })
  )

  it.effect("answers the holder of a lease alone, and passes on no header that is meant for it", () =>
    Effect.gen(function* () {
      const port = yield* site
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const lease = yield* proxy.lease
        const wrong = `Basic ${Buffer.from(`choir:${"0".repeat(48)}`).toString("base64")}`
        for (const credentials of [undefined, wrong, "Basic", "Bearer x", "Basic Y2hvaXI="]) {
          assert.strictEqual(yield* statusOf(proxy, "site.test:80", credentials), 407)
          assert.strictEqual((yield* plain(proxy, "http://site.test/", credentials)).status, 407)
        }
        assert.strictEqual((yield* plain(proxy, "/", authorization(lease))).status, 400)
        assert.strictEqual((yield* plain(proxy, "https://site.test/", authorization(lease))).status, 400)
        const answer = yield* plain(proxy, "http://site.test/", authorization(lease), { "x-kept": "1", "proxy-x": "2" })
        assert.strictEqual(answer.status, 200)
        assert.deepInclude(JSON.parse(answer.text), { host: "site.test", "x-kept": "1" })
        assert.notInclude(answer.text, "proxy-authorization")
      }).pipe(
        Effect.provide(layerDialer({ names: { "site.test": [[PUBLIC_ADDRESS]] }, served: { [PUBLIC_ADDRESS]: port } }))
      )
    })
  )

  it.effect("keeps a connection longer than a browser does, so that no page meets one that is being cut", () =>
    Effect.gen(function* () {
      const port = yield* site
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const credentials = authorization(yield* proxy.lease)
        const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1")
        yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
        socket.write(`GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nProxy-Authorization: ${credentials}\r\n\r\n`)
        const [head] = yield* Effect.promise(() => once(socket, "data"))
        const [, seconds = "0"] = /^keep-alive: timeout=(\d+)/imu.exec(String(head)) ?? []
        assert.isAbove(Number(seconds), CHROMIUM_IDLE_SECONDS)
      }).pipe(
        Effect.provide(layerDialer({ names: { "site.test": [[PUBLIC_ADDRESS]] }, served: { [PUBLIC_ADDRESS]: port } }))
      )
    })
  )

  it.effect("bounds the connections and bytes of a lease, and cuts everything when the lease ends", () =>
    Effect.gen(function* () {
      const port = yield* site
      yield* Effect.gen(function* () {
        const proxy = yield* openWebProxy
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(proxy.lease, scope)
        const credentials = authorization(lease)
        const flood = yield* plain(proxy, "http://site.test/flood", credentials)
        assert.isAtMost(flood.bytes, PAGE_BYTES_MAX)
        assert.deepStrictEqual(lease.refusals(), ["the page was cut after 10 MiB"])
        assert.strictEqual((yield* plain(proxy, "http://site.test/", credentials)).status, 502)
        lease.renew()
        assert.deepStrictEqual(lease.refusals(), [])
        assert.strictEqual((yield* plain(proxy, "http://site.test/", credentials)).status, 200)
        const open: Array<Socket> = []
        for (let count = 0; count < LEASE_CONNECTIONS_MAX; count++)
          open.push((yield* tunnel(proxy, "site.test:443", credentials)).socket)
        assert.strictEqual(yield* statusOf(proxy, "site.test:443", credentials), 503)
        const gone = (socket: Socket) =>
          Effect.callback<void>((resume) => {
            if (socket.destroyed) resume(Effect.void)
            else socket.once("close", () => resume(Effect.void))
          })
        const closed = Effect.forEach(open, gone, { concurrency: "unbounded", discard: true })
        yield* Scope.close(scope, Exit.void)
        yield* closed
        assert.strictEqual(yield* statusOf(proxy, "site.test:443", credentials), 407)
      }).pipe(
        Effect.provide(layerDialer({ names: { "site.test": [[PUBLIC_ADDRESS]] }, served: { [PUBLIC_ADDRESS]: port } }))
      )
    })
  )

  it("takes addresses of the public network for public", () => {
    for (const address of ["1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"])
      assert.isTrue(isGlobalAddress(address), address)
    for (const text of ["", "public.test", "1.1.1", "1.1.1.1:80", "1.1.1.1%eth0"])
      assert.isFalse(isGlobalAddress(text), text)
  })
})
