/** A model in a browser, through all of Choir: a real agent, a real choird with its proxy, a real Chromium; the sites are of the test. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import type { ApprovalDetail } from "#schema/ApprovalsApi.ts"
import { ApprovalId, type InboxId, type SessionId } from "#schema/Ids.ts"
import type { PrintedEvent } from "#schema/SessionsApi.ts"
import { browsing, isOfJob, lastAsked, resultsOf } from "./browsingModel.ts"
import { startWithin } from "./choirdWithin.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools, makeProvider, type ProviderRequest, type Reply } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"
import { httpServer, PUBLIC_ADDRESS } from "../support/web.ts"

/** A shop whose button costs more once the test says so. */
const TRAP = `<!doctype html><title>Tea trap</title><h1>Tea</h1><button onclick="location='/order?n=trap'">Pay 5 €</button>
  <script>fetch("/swap").then(() => { document.querySelector("button").textContent = "Pay 500 €"; fetch("/swapped") })</script>`

const SHOP = `<!doctype html><title>Tea shop</title><h1>Teas</h1>
  <form action="/order"><label>Name <input name=n></label><button>Order tea</button></form>`

const orders = (request: ProviderRequest) =>
  browsing(
    [
      { input: { action: "open", url: "http://shop.test/" } },
      { input: { action: "snapshot" } },
      { input: { action: "type", text: "Ada" }, on: /textbox/u },
      { input: { action: "click" }, on: /button/u },
      { input: { action: "read" } }
    ],
    () => "ordered"
  )(request)

const pays = (request: ProviderRequest) =>
  browsing(
    [{ input: { action: "open", url: "http://trap.test/" } }, { input: { action: "click" }, on: /button/u }],
    () => "paid"
  )(request)

/** Edge starts the jobs `look`, which opens a page that does not answer, and `note`; of anything else it asks its memory. */
const decide = (request: ProviderRequest): Reply => {
  if (isOfJob(request, "look"))
    return browsing([{ input: { action: "open", url: "http://slow.test/" } }], () => "looked")(request)
  const isFirst = resultsOf(request).length === 0
  if (isOfJob(request, "note"))
    return isFirst
      ? callTools([{ name: "choir-fs-write", input: { path: "n.txt", content: "noted", mode: "overwrite" } }])
      : answer("noted")
  const asked = lastAsked(request)
  if (asked.startsWith("order")) return orders(request)
  if (asked.startsWith("pay")) return pays(request)
  if (asked.startsWith("work"))
    return isFirst
      ? callTools(
          ["look", "note"].map((task) => ({ name: "choir-core-spawn", input: { job_name: task, task_spec: task } }))
        )
      : answer("started")
  return asked === "what do you know?" && isFirst
    ? callTools([{ name: "choir-memory-query", input: { store: "working", mode: "keyword", query: "tea" } }])
    : answer("that is all")
}

const rig = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise(decide)
  const ordered: Array<string> = []
  /** Completed when the slow page is asked for, and when it may answer. */
  const [asked, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  /** Completed when the button may change, and when it has. */
  const [swap, swapped] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const port = yield* httpServer((request: IncomingMessage, response: ServerResponse) => {
    const page = (html: string) => response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(html)
    if (request.headers.host === "slow.test") {
      Deferred.doneUnsafe(asked, Effect.void)
      Effect.runFork(
        Effect.andThen(
          Deferred.await(released),
          Effect.sync(() => page("<p>at last</p>"))
        )
      )
    } else if (request.url?.startsWith("/order") === true) {
      ordered.push(request.url)
      page("<title>Thanks</title><p>Your order was taken.</p>")
    } else if (request.url === "/swap")
      Effect.runFork(
        Effect.andThen(
          Deferred.await(swap),
          Effect.sync(() => page("now"))
        )
      )
    else if (request.url === "/swapped") {
      Deferred.doneUnsafe(swapped, Effect.void)
      page("")
    } else page(request.headers.host === "trap.test" ? TRAP : SHOP)
  })
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    config: { heartbeat_interval_ms: 200, approvals: { confirm_external: "tainted" } }
  })
  const names = { "shop.test": [[PUBLIC_ADDRESS]], "slow.test": [[PUBLIC_ADDRESS]], "trap.test": [[PUBLIC_ADDRESS]] }
  yield* startWithin(choir.home, { names, served: { [PUBLIC_ADDRESS]: port } })
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const { approvals } = choir.api
  /** The next approval that waits for a person. */
  const waiting = approvals.list({ query: {} }).pipe(
    Effect.repeat({ until: (all) => all.length > 0 }),
    Effect.flatMap(([first]) => approvals.show({ params: { id: first?.approval_id ?? ApprovalId.make("0") } }))
  )
  const approve = ({ approval_id, hash }: ApprovalDetail) =>
    approvals.approve({ params: { id: approval_id }, payload: { hash: hash.slice(0, 8) } })
  return { ...choir, approve, asked, ordered, released, session_id: session_id as SessionId, swap, swapped, waiting }
})

class Rig extends Context.Service<Rig, Effect.Success<typeof rig>>()("test/Rig") {}

/** The results of this tool's calls, in order. */
const resultsIn = (history: ReadonlyArray<PrintedEvent>, tool: string) => {
  const calls = new Set(
    history.flatMap(({ event }) =>
      event.event_type === "ToolCallRequested" && event.payload.tool === tool ? [event.payload.call_id] : []
    )
  )
  return history.flatMap(({ event }) =>
    event.event_type === "ToolResultCommitted" && calls.has(event.payload.call_id) ? [event] : []
  )
}

const replyTo = (history: ReadonlyArray<PrintedEvent>, inbox_id: InboxId) =>
  history.find(({ event }) => event.event_type === "AgentMessage" && event.payload.in_reply_to === inbox_id)

const missing = ensureDebianPackages(["chromium"], "browsing through all of Choir")

describe.skipIf(missing !== undefined)("a model that browses", () => {
  layer(Layer.effect(Rig, rig), { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect(
      "opens, looks, types, clicks and reads, and the log shows each step with its site, certainty and locator",
      () =>
        Effect.gen(function* () {
          const { approve, events, ordered, send, session_id, settled, waiting } = yield* Rig
          const { inbox_id } = yield* send("order-1", "order tea at http://shop.test/")
          const typing = yield* waiting
          assert.include(typing.text, 'page: "shop.test", path "/", titled "Tea shop"\nelement: textbox "Name"\n')
          yield* approve(typing)
          const clicking = yield* waiting
          assert.include(clicking.text, 'page: "shop.test", path "/", titled "Tea shop"\nelement: button "Order tea"\n')
          assert.deepStrictEqual(ordered, [])
          yield* approve(clicking)
          yield* settled(inbox_id)
          assert.deepStrictEqual(ordered, ["/order?n=Ada"])
          const history = yield* events(session_id)
          assert.deepStrictEqual(historyProblems(session_id, history), [])
          const results = resultsIn(history, "choir.web.browse").map(({ payload }) => payload)
          assert.deepStrictEqual(
            results.map(({ acted, output, sources, status, untrusted }) => [
              status,
              sources,
              untrusted,
              acted,
              (output as { readonly locator?: string }).locator
            ]),
            [
              ["success", ["web:shop.test"], true, undefined, undefined],
              ["success", ["web:shop.test"], true, undefined, undefined],
              ["success", ["web:shop.test"], true, "accepted", "getByRole('textbox', { name: 'Name' })"],
              ["success", ["web:shop.test"], true, "accepted", "getByRole('button', { name: 'Order tea' })"],
              ["success", ["web:shop.test"], true, undefined, undefined]
            ]
          )
          assert.match(JSON.stringify(results.at(-1)?.output), /Your order was taken/u)
        })
    )

    it.effect("does not click on a button that changed between the card and the tap, and tells the model", () =>
      Effect.gen(function* () {
        const { approve, events, ordered, send, session_id, settled, swap, swapped, waiting } = yield* Rig
        const before = ordered.length
        const { inbox_id } = yield* send("pay-1", "pay at http://trap.test/")
        const card = yield* waiting
        assert.include(card.text, 'page: "trap.test", path "/", titled "Tea trap"\nelement: button "Pay 5 €"\n')
        yield* Deferred.succeed(swap, undefined)
        yield* Deferred.await(swapped)
        yield* approve(card)
        yield* settled(inbox_id)
        assert.lengthOf(ordered, before)
        const clicked = resultsIn(yield* events(session_id), "choir.web.browse").at(-1)?.payload
        assert.strictEqual(clicked?.status, "error")
        assert.match(clicked?.summary ?? "", /the page has changed: button "Pay 5 €" .*Nothing was done/u)
        assert.isUndefined(clicked?.acted)
      })
    )

    it.effect("keeps no other lane waiting while its page does not answer (R62)", () =>
      Effect.gen(function* () {
        const { asked, events, released, send, session_id, settled } = yield* Rig
        const working = yield* send("work-1", "work at http://slow.test/")
        yield* Deferred.await(asked)
        const question = yield* send("question-1", "what do you know?")
        yield* settled(question.inbox_id)
        const noted = yield* Effect.repeat(events(session_id), {
          until: (all) => all.some(({ event }) => event.event_type === "CoreStopped" && event.lane === "core:note")
        })
        // The other lanes are done, by choird's own copy of the log, and the page has not answered yet.
        assert.isDefined(replyTo(noted, question.inbox_id))
        assert.lengthOf(resultsIn(noted, "choir.memory.query"), 1)
        assert.isFalse(resultsIn(noted, "choir.web.browse").some(({ lane }) => lane === "core:look"))
        yield* Deferred.succeed(released, undefined)
        yield* settled(working.inbox_id)
        const history = yield* events(session_id)
        const looked = resultsIn(history, "choir.web.browse").find(({ lane }) => lane === "core:look")
        assert.strictEqual(looked?.payload.status, "success")
        assert.match(JSON.stringify(looked?.payload.output), /at last/u)
        assert.deepStrictEqual(historyProblems(session_id, history), [])
      })
    )
  })
})
