/**
 * DNS rebinding: a page's own name server answers with a public address first and with one of this machine or its network the next time. Asked by
 * choird's real resolver, over the network, for the web tool and for the browser's proxy.
 */
import { request } from "node:http"
import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Internet, internetOf } from "#src/choird/workers/Internet.ts"
import { WebDialer } from "#src/choird/workers/WebDialer.ts"
import { fetchPage } from "#src/choird/workers/webRequest.ts"
import { openWebProxy } from "#src/choird/workers/WebProxy.ts"
import { type NameAnswer, nameServer } from "./nameServer.ts"
import { canary, httpServer, layerConfigOf, PUBLIC_ADDRESS } from "../support/web.ts"

const at = (...addresses: ReadonlyArray<string>): NameAnswer => ({ addresses })
const PUBLIC = at(PUBLIC_ADDRESS)

/** What the second answer leads to. */
const INSIDE: ReadonlyArray<readonly [name: string, answer: NameAnswer]> = [
  ["loopback.test", at("127.0.0.1")],
  ["any.test", at("0.0.0.0")],
  ["metadata.test", at("169.254.169.254")],
  ["private.test", at("10.0.0.1", "192.168.1.1")],
  ["loopback6.test", at("::1")],
  ["mapped.test", at("::ffff:7f00:1")],
  ["local6.test", at("fd00::1", "fe80::1")],
  ["alias.test", { addresses: ["127.0.0.1"], alias: "localhost" }],
  ["many.test", at(...Array.from({ length: 20 }, (_, index) => `127.0.0.${index + 1}`))]
]

/** The real resolver, asking this name server; of all places only the public address is somewhere, on loopback. */
const layerOf = (server: string, site: number, dialled: Array<string>) => {
  const real = internetOf([server])
  return WebDialer.layer.pipe(
    Layer.provide(
      Layer.succeed(Internet, {
        ...real,
        isOwn: () => false,
        connect: (address, port) => {
          dialled.push(address)
          return address === PUBLIC_ADDRESS
            ? connect({ host: "127.0.0.1", port: site })
            : connect({ host: address, port })
        }
      })
    ),
    Layer.provide(layerConfigOf())
  )
}

const open = Effect.gen(function* () {
  const trap = yield* canary
  const site = yield* httpServer((_request, response) => void response.end("the public page"))
  const server = yield* nameServer({
    ...Object.fromEntries(INSIDE.map(([name, answer]) => [name, [PUBLIC, answer]])),
    "mixed.test": [at("127.0.0.1", PUBLIC_ADDRESS, "::1")]
  })
  const dialled: Array<string> = []
  return { trap, server, dialled, layer: layerOf(server.server, site, dialled) }
})

/** A GET and a CONNECT through the browser's proxy. */
const byProxy = Effect.fnUntraced(function* (address: string) {
  const { lease, url } = yield* openWebProxy
  const { password, username } = yield* lease
  const credentials = `Basic ${Buffer.from(`${username}:${Redacted.value(password)}`).toString("base64")}`
  const headers = { "proxy-authorization": credentials }
  const ask = (method: string, path: string) =>
    Effect.callback<number>((resume) => {
      const sent = request(url, { method, path, headers, agent: false })
      const answered = (status: number) => {
        sent.destroy()
        resume(Effect.succeed(status))
      }
      sent.once("response", ({ statusCode = 0 }) => answered(statusCode))
      sent.once("connect", ({ statusCode = 0 }) => answered(statusCode))
      sent.on("error", () => answered(0))
      sent.end()
    })
  const { host } = new URL(address)
  return [yield* ask("GET", address), yield* ask("CONNECT", host)] as const
}, Effect.scoped)

describe("a name that means another place the second time", () => {
  it.live("leads the web tool nowhere but to the public address, however it is asked again", () =>
    Effect.gen(function* () {
      const { dialled, layer, server, trap } = yield* open
      yield* Effect.gen(function* () {
        for (const [name] of INSIDE) {
          const address = new URL(`http://${name}:${trap.port}/`)
          const first = yield* fetchPage(address, "text/html")
          assert.strictEqual(first.body.toString(), "the public page", name)
          assert.strictEqual(server.asked(name), 1, name)
          const second = yield* Effect.flip(fetchPage(address, "text/html"))
          assert.match(second.message, /is not on the public network/u, name)
        }
        const mixed = yield* fetchPage(new URL(`http://mixed.test:${trap.port}/`), "text/html")
        assert.strictEqual(mixed.body.toString(), "the public page")
      }).pipe(Effect.provide(layer))
      assert.strictEqual(trap.hits(), 0)
      assert.deepStrictEqual([...new Set(dialled)], [PUBLIC_ADDRESS])
    })
  )

  it.live("leads a page in the browser nowhere but to the public address", () =>
    Effect.gen(function* () {
      const { dialled, layer, trap } = yield* open
      yield* Effect.gen(function* () {
        for (const [name] of INSIDE) {
          // The request gets the public address, and the tunnel after it the other one.
          const [plain, tunnel] = yield* byProxy(`http://${name}:${trap.port}/`)
          assert.deepStrictEqual([plain, tunnel], [200, 502], name)
        }
      }).pipe(Effect.provide(layer))
      assert.strictEqual(trap.hits(), 0)
      assert.deepStrictEqual([...new Set(dialled)], [PUBLIC_ADDRESS])
    })
  )
})
