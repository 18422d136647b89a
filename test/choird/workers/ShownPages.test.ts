import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { CallId } from "#schema/Ids.ts"
import { agent, layerRig, pageOf, refOf, Rig } from "../../support/browserRig.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

let swaps = 0

/** A page whose button changes what it says once it is told to. */
const swapping = Effect.gen(function* () {
  const { gates, serve } = yield* Rig
  swaps += 1
  const [gate, done] = [`/swap-${swaps}`, `/swapped-${swaps}`]
  const path = `/pays-${swaps}`
  const told = { asked: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
  const swapped = { asked: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
  gates.set(gate, told).set(done, swapped)
  serve.set(
    path,
    pageOf(`<button onclick="location='/echo?paid-${swaps}'">Pay 5 €</button><script>
      fetch("${gate}").then(() => { document.querySelector("button").textContent = "Pay 500 €"; fetch("${done}") })</script>`)
  )
  const swap = Effect.andThen(Deferred.succeed(told.open, undefined), Deferred.await(swapped.asked))
  return { url: `http://site.test${path}`, swap, paid: `/echo?paid-${swaps}` }
})

const missing = ensureDebianPackages(["chromium"], "what was shown of pages")

describe.skipIf(missing !== undefined)("what was shown of a page", () => {
  layer(layerRig, { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect("does nothing on a page that has changed since it was shown, and says so", () =>
      Effect.gen(function* () {
        const { asked } = yield* Rig
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const { paid, swap, url } = yield* swapping
        const { text = "" } = yield* seen({ action: "open", url })
        yield* swap
        const { output, status } = yield* browse({ action: "click", ref: refOf(text, /Pay 5 €/u) })
        assert.strictEqual(status, "error")
        assert.match(JSON.stringify(output), /the page has changed: button .*Pay 5 €.*Nothing was done/u)
        assert.notInclude(asked, paid)
        const again = yield* seen({ action: "snapshot" })
        assert.match((yield* seen({ action: "click", ref: refOf(again.text ?? "", /Pay 500 €/u) })).text ?? "", /paid/u)
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect("sees a change of what has no name but its text, and of what has the focus", () =>
      Effect.gen(function* () {
        const { asked, gates, serve } = yield* Rig
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const told = { asked: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
        const swapped = { asked: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
        gates.set("/swap-text", told).set("/swapped-text", swapped)
        serve.set(
          "/texts",
          pageOf(`<div style="cursor:pointer" onclick="location='/echo?text-clicked'"><span>Pay</span> <b>5 €</b></div><input aria-label=one autofocus><input aria-label=two>
            <script>fetch("/swap-text").then(() => { document.querySelector("b").textContent = "500 €"; document.querySelector("[aria-label=two]").focus(); fetch("/swapped-text") })</script>`)
        )
        const { text = "" } = yield* seen({ action: "open", url: "http://site.test/texts" })
        yield* Deferred.succeed(told.open, undefined)
        yield* Deferred.await(swapped.asked)
        const clicked = yield* browse({ action: "click", ref: refOf(text, /generic .*cursor=pointer/u) })
        assert.match(JSON.stringify(clicked.output), /the page has changed: .*Pay 5 €.*Pay 500 €/u)
        const pressed = yield* browse({ action: "press", key: "a" })
        assert.match(JSON.stringify(pressed.output), /the page has changed: textbox .*one.*two/u)
        assert.notInclude(asked, "/echo?text-clicked")
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect("does what a person approved on what that person saw, and nothing else", () =>
      Effect.gen(function* () {
        const { asked, worker } = yield* Rig
        const epoch = yield* Scope.make()
        const { browse, seen, session_id } = yield* agent(epoch)
        const { paid, swap, url } = yield* swapping
        const { text = "" } = yield* seen({ action: "open", url })
        const ref = refOf(text, /Pay 5 €/u)
        const call = { call_id: CallId.make("c-1-0"), is_asked: true }
        const held = yield* worker.hold(session_id, call.call_id, ref)
        assert.deepStrictEqual([held.site, held.title], ["site.test", "Echo"])
        assert.deepInclude(held.element, { role: "button", name: "Pay 5 €" })
        yield* swap
        // Another lane looks at the page while the person thinks, and is asked about what it sees there.
        const now = yield* seen({ action: "snapshot" })
        const later = yield* worker.hold(session_id, CallId.make("c-2-0"), refOf(now.text ?? "", /Pay 500 €/u))
        assert.strictEqual(later.element.name, "Pay 500 €")
        const { output, status } = yield* browse({ action: "click", ref }, call)
        assert.strictEqual(status, "error")
        assert.match(JSON.stringify(output), /the page has changed: button .*Pay 5 €.*Nothing was done/u)
        // Held is what was shown, not what a ref means later.
        assert.strictEqual((yield* worker.hold(session_id, call.call_id, ref)).element.name, "Pay 5 €")
        assert.notInclude(asked, paid)
        const unseen = yield* browse(
          { action: "click", ref: later.ref ?? "" },
          { call_id: CallId.make("c-3-0"), is_asked: true }
        )
        assert.match(JSON.stringify(unseen.output), /the page that was shown to the person who approved this is gone/u)
        yield* seen({ action: "open", url: "http://site.test/echo?elsewhere" })
        const moved = yield* browse(
          { action: "click", ref: later.ref ?? "" },
          { call_id: CallId.make("c-2-0"), is_asked: true }
        )
        assert.match(JSON.stringify(moved.output), /is not there any more/u)
        assert.notInclude(asked, paid)
        yield* Scope.close(epoch, Exit.void)
      })
    )
  })
})
