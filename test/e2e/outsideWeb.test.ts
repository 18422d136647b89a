/** The web of a whole Choir in which nothing of Choir is replaced: real interfaces, a real name server, real routes, http and https, Chromium. */
import { execFileSync } from "node:child_process"
import { createServer } from "node:http"
import { type AddressInfo, isIP } from "node:net"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { makeAuthority } from "../support/certificate.ts"
import { putDatabase } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import {
  type Families,
  noOutsideNetwork,
  outsideNetwork,
  SITE_V4,
  SITE_V6,
  TRAP_PORT
} from "../support/outside/outsideNetwork.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools, makeProvider, type ProviderRequest } from "../support/testing/Provider.ts"
import { TRICKS } from "../choird/workers/ssrfTricks.ts"
import { lastAsked, resultsOf } from "./browsingModel.ts"

const PAGE = `<!doctype html><title>Tea</title><article><h1>Tea</h1>${"<p>Tea is made of leaves and hot water, and people drink it in the afternoon.</p>".repeat(4)}</article>`

/** A site that has a page, and leads wherever it is asked to. */
const site = Effect.acquireRelease(
  Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = createServer((request, response) => {
      const to = new URL(request.url ?? "/", "http://site.example").searchParams.get("to")
      if (to === null) response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE)
      // As bytes, since Node refuses other letters in a header.
      else response.writeHead(302, { location: Buffer.from(to).toString("latin1") }).end()
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
)

/** Calls that the model makes at once. */
const CALLS_AT_ONCE = 8
/** How often a page is opened until a call has had enough time. */
const OPENED_MAX = 8
const LATE = /in time|did not end within|too busy to be shown/u
const Wanted = Schema.fromJsonString(
  Schema.Struct({ tool: Schema.String, inputs: Schema.Array(Schema.Record(Schema.String, Schema.Json)) })
)

/** Makes the calls that a message lists. */
const decide = (request: ProviderRequest) => {
  const { inputs, tool } = Schema.decodeUnknownSync(Wanted)(/\{.*\}/su.exec(lastAsked(request))?.[0])
  const done = resultsOf(request).length
  const next = inputs.slice(done, done + CALLS_AT_ONCE)
  return next.length === 0 ? answer("done") : callTools(next.map((input) => ({ name: tool, input })))
}

/** Names whose answers a name server can put into a packet. */
const names = Object.fromEntries(
  TRICKS.flatMap(({ answers = [], host }) =>
    answers.length > 0 && answers.flat().every((address) => isIP(address) !== 0 && !address.includes("%"))
      ? [[host, answers]]
      : []
  )
)

const rig = Effect.fnUntraced(function* (families: Families) {
  const provider = yield* makeProvider
  yield* provider.otherwise(decide)
  const { port } = (yield* site).address() as AddressInfo
  const web = [
    { port: 80, tls: false, to: port },
    { port: 443, tls: true, to: port }
  ]
  const network = yield* outsideNetwork({
    authority: yield* makeAuthority(["site.example", "api.openai.com"]),
    families,
    hosts: {
      "site.example": web,
      "api.openai.com": [{ port: 443, tls: true, to: Number(new URL(provider.endpoint).port) }]
    },
    names: {
      ...names,
      "four.example": [[SITE_V4]],
      "six.example": [[SITE_V6]],
      "many.example": [[SITE_V4, "93.184.217.1", "93.184.217.2", "93.184.217.3", SITE_V6]],
      "rebind.example": [
        [SITE_V4, SITE_V6],
        ["127.0.0.1", "::1"]
      ]
    }
  })
  const choir = yield* makeInstallation({
    endpoint: "https://api.openai.com/v1",
    runtime: "sandbox",
    database: putDatabase,
    config: { crash_detection_threshold_ms: 120_000 },
    within: network.within,
    env: network.env
  })
  yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  let messages = 0
  /** The results of these calls, in order. */
  const call = Effect.fnUntraced(function* (
    tool: string,
    inputs: ReadonlyArray<Readonly<Record<string, Schema.Json>>>
  ) {
    const before = yield* choir.events(session_id as SessionId)
    const { inbox_id } = yield* choir.send(`m-${messages++}`, JSON.stringify({ tool, inputs }))
    yield* choir.settled(inbox_id)
    const history = (yield* choir.events(session_id as SessionId)).slice(before.length)
    const order = history.flatMap(({ event }) =>
      event.event_type === "ToolCallRequested" ? [event.payload.call_id] : []
    )
    return order.map((call_id) => {
      const found = history.find(
        ({ event }) => event.event_type === "ToolResultCommitted" && event.payload.call_id === call_id
      )
      assert.strictEqual(found?.event.event_type, "ToolResultCommitted")
      return found?.event.event_type === "ToolResultCommitted" ? found.event.payload : assert.fail(call_id)
    })
  })
  const fetch = (...urls: ReadonlyArray<string>) =>
    call(
      "choir-web-fetch",
      urls.map((url) => ({ url }))
    )
  /** Opens each page; once more where a machine that is busy with other tests took all the time of a call. */
  const browse = Effect.fnUntraced(function* (...urls: ReadonlyArray<string>) {
    const found: Array<Effect.Success<ReturnType<typeof call>>[number]> = []
    for (const url of urls) {
      let tried = (yield* call("choir-web-browse", [{ action: "open", url }]))[0]
      for (let again = 1; again < OPENED_MAX && LATE.test(JSON.stringify(tried?.output)); again++)
        tried = (yield* call("choir-web-browse", [{ action: "open", url }]))[0]
      if (tried !== undefined) found.push(tried)
    }
    return found
  })
  return { ...network, browse, fetch, families }
})

class Rig extends Context.Service<Rig, Effect.Success<ReturnType<typeof rig>>>()("choir/test/OutsideWeb") {}

/** What a page and a redirect to a private place are asked for by. */
const places = TRICKS.map(({ host }) => `http://${host}:${TRAP_PORT}/`)
const leadingTo = (place: string) => `http://site.example/?to=${encodeURIComponent(place)}`
/** Places for the browser, which takes longer for each; `webBrowse.test.ts` has the others. */
const browsed = ["127.0.0.1", "[::1]", "169.254.169.254"]
const own = ["192.168.77.2", "[2a00:1098:77:1::2]", "[2a00:1098:77:1::9]", "[fe80::1]"]

/** A connection from the host by none of Choir's own code. */
const reach = (within: ReadonlyArray<string>, host: string) => {
  const [first = "", ...rest] = within
  const script = `fetch("http://${host}:${TRAP_PORT}/").then((it) => it.text()).then((it) => console.log(it))`
  return execFileSync(first, [...rest, process.execPath, "-e", script])
    .toString()
    .trim()
}

const leftOut =
  noOutsideNetwork("the web with nothing of Choir replaced") ??
  ensureDebianPackages(["bubblewrap", "chromium"], "the web with nothing of Choir replaced")

describe.skipIf(leftOut !== undefined).each(["IPv4", "IPv6", "both"] as const)(
  "the web of a host with %s and ::1",
  (families) => {
    layer(Layer.effect(Rig, rig(families)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
      it.effect("is fetched and browsed by http and https", () =>
        Effect.gen(function* () {
          const { browse, fetch, seen } = yield* Rig
          const hosts = [
            "site.example",
            ...(families === "IPv6" ? [] : ["four.example"]),
            ...(families === "IPv4" ? [] : ["six.example", "many.example"])
          ]
          const urls = ["https://site.example/", ...hosts.map((host) => `http://${host}/`)]
          for (const [n, { output, status }] of (yield* fetch(...urls)).entries()) {
            assert.strictEqual(status, "success", `${urls[n]}: ${JSON.stringify(output)}`)
            assert.include(JSON.stringify(output), "made of leaves and hot water")
          }
          for (const { output, status } of yield* browse("http://site.example/", "https://site.example/")) {
            assert.strictEqual(status, "success", JSON.stringify(output))
            assert.include(JSON.stringify(output), "made of leaves and hot water")
          }
          assert.deepStrictEqual((yield* seen).trapped, [])
        })
      )

      it.effect(
        "is all that is reached: by no form of an address, no name, no redirect and no second answer (R72)",
        () =>
          Effect.gen(function* () {
            const { browse, fetch, seen } = yield* Rig
            const all = [...places, ...own.map((host) => `http://${host}:${TRAP_PORT}/`)]
            for (const urls of [all, all.map(leadingTo)])
              for (const [n, { status }] of (yield* fetch(...urls)).entries())
                assert.strictEqual(status, "error", urls[n])
            assert.strictEqual((yield* fetch("http://rebind.example/"))[0]?.status, "success")
            for (const { status } of yield* fetch("http://rebind.example/", `http://rebind.example:${TRAP_PORT}/`))
              assert.strictEqual(status, "error")
            const inBrowser = browsed.map((host) => `http://${host}:${TRAP_PORT}/`)
            for (const { output } of yield* browse(...inBrowser, leadingTo(`http://127.0.0.1:${TRAP_PORT}/`)))
              assert.notInclude(JSON.stringify(output), "TRAPPED")
            assert.deepStrictEqual((yield* seen).trapped, [])
          })
      )

      it.effect("has traps that anything but Choir runs into", () =>
        Effect.gen(function* () {
          const { seen, within } = yield* Rig
          const hosts = [
            "127.0.0.1",
            "[::1]",
            ...(families === "IPv6" ? [] : ["10.0.0.1"]),
            ...(families === "IPv4" ? [] : ["[fd00:ec2::254]"])
          ]
          for (const host of hosts) assert.strictEqual(reach(within, host), "TRAPPED", host)
          assert.lengthOf((yield* seen).trapped, hosts.length)
        })
      )
    })
  }
)
