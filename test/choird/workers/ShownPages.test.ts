import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { CallId } from "#schema/Ids.ts"
import { layerRig, OneAgent, pageOf, refOf, Rig } from "../../support/browserRig.ts"
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

/** A path whose answer waits until it is told to come. */
const gate = Effect.fnUntraced(function* (path: string) {
  const { gates } = yield* Rig
  const made = { asked: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
  gates.set(path, made)
  return made
})

const approved = (id: string) => ({ call_id: CallId.make(id), is_asked: true })

const missing = ensureDebianPackages(["chromium"], "what was shown of pages")

describe.skipIf(missing !== undefined)("what was shown of a page", () => {
  layer(Layer.provideMerge(OneAgent.layer, layerRig), { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect("does nothing on a page that has changed since it was shown, and says so", () =>
      Effect.gen(function* () {
        const { asked } = yield* Rig
        const { browse, seen } = yield* OneAgent
        const { paid, swap, url } = yield* swapping
        const { text = "" } = yield* seen({ action: "open", url })
        yield* swap
        const { output, status } = yield* browse({ action: "click", ref: refOf(text, /Pay 5 €/u) })
        assert.strictEqual(status, "error")
        assert.match(JSON.stringify(output), /the page has changed: button .*Pay 5 €.*Nothing was done/u)
        assert.notInclude(asked, paid)
        const again = yield* seen({ action: "snapshot" })
        assert.match((yield* seen({ action: "click", ref: refOf(again.text ?? "", /Pay 500 €/u) })).text ?? "", /paid/u)
      })
    )

    it.effect("sees a change of what has no name but its text, and of what has the focus", () =>
      Effect.gen(function* () {
        const { asked, gates, serve } = yield* Rig
        const { browse, seen } = yield* OneAgent
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
      })
    )

    it.effect("compares names that are too long for a tree, and shows how they begin", () =>
      Effect.gen(function* () {
        const { asked, serve, worker } = yield* Rig
        const long = "Pay for this ".repeat(90)
        const pays = `onclick="location='/echo?long-paid'"`
        for (const [kind, on, html, change] of [
          ["own", /button/u, `<button id=b ${pays}>${long}5 €</button>`, `b.textContent = "${long}500 €"`],
          [
            "inner",
            /generic .*cursor=pointer/u,
            `<div style="cursor:pointer" ${pays}><b>Pay</b><img id=b src=x alt="${long}5 €"></div>`,
            `b.alt = "${long}500 €"`
          ],
          ["focused", /textbox/u, `<input id=b autofocus aria-label="${long}5 €">`, `b.ariaLabel = "${long}500 €"`]
        ] as const) {
          const told = yield* gate(`/long-${kind}`)
          const changed = yield* gate(`/longer-${kind}`)
          serve.set(
            `/names-${kind}`,
            pageOf(`${html}<script>fetch("/long-${kind}").then(() => { ${change}; fetch("/longer-${kind}") })</script>`)
          )
          const { browse, seen, session_id } = yield* OneAgent
          const { text = "" } = yield* seen({ action: "open", url: `http://site.test/names-${kind}` })
          assert.notInclude(text, "Pay for this")
          const input =
            kind === "focused"
              ? { action: "press" as const, key: "Enter" }
              : { action: "click" as const, ref: refOf(text, on) }
          const call = approved(`c-long-${kind}`)
          const { element } = yield* worker.hold(session_id, call.call_id, input)
          assert.match(element.name, kind === "inner" ? /^Pay$/u : /^Pay for this Pay/u)
          yield* Deferred.succeed(told.open, undefined)
          yield* Deferred.await(changed.asked)
          const { output, status } = yield* browse(input, call)
          assert.strictEqual(status, "error", kind)
          assert.match(JSON.stringify(output), /the page has changed: .*Pay.*Nothing was done/u)
        }
        assert.notInclude(asked, "/echo?long-paid")
      })
    )

    it.effect("does what a person approved on what that person saw, and nothing else", () =>
      Effect.gen(function* () {
        const { asked, worker } = yield* Rig
        const { browse, seen, session_id } = yield* OneAgent
        const { paid, swap, url } = yield* swapping
        const { text = "" } = yield* seen({ action: "open", url })
        const ref = refOf(text, /Pay 5 €/u)
        const call = { call_id: CallId.make("c-1-0"), is_asked: true }
        const held = yield* worker.hold(session_id, call.call_id, { action: "click", ref })
        assert.deepStrictEqual([held.site, held.title], ["site.test", "Echo"])
        assert.deepInclude(held.element, { role: "button", name: "Pay 5 €" })
        yield* swap
        // Another lane looks at the page while the person thinks, and is asked about what it sees there.
        const now = yield* seen({ action: "snapshot" })
        const later = yield* worker.hold(session_id, CallId.make("c-2-0"), {
          action: "click",
          ref: refOf(now.text ?? "", /Pay 500 €/u)
        })
        assert.strictEqual(later.element.name, "Pay 500 €")
        const { output, status } = yield* browse({ action: "click", ref }, call)
        assert.strictEqual(status, "error")
        assert.match(JSON.stringify(output), /the page has changed: button .*Pay 5 €.*Nothing was done/u)
        // Held is what was shown, not what a ref means later.
        assert.strictEqual(
          (yield* worker.hold(session_id, call.call_id, { action: "click", ref })).element.name,
          "Pay 5 €"
        )
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
      })
    )

    it.effect("does not act once the same document has another address or title than a person saw", () =>
      Effect.gen(function* () {
        const { asked, serve, worker } = yield* Rig
        const { browse, seen, session_id } = yield* OneAgent
        const [rename, renamed] = [yield* gate("/rename"), yield* gate("/renamed")]
        serve.set(
          "/app",
          pageOf(`<button onclick="fetch('/echo?app-clicked')">Confirm</button><script>
            addEventListener("hashchange", () => { document.title = "Delete the account" })
            document.title = "Leave the newsletter"
            fetch("/rename").then(() => { document.title = "Leave for ever"; fetch("/renamed") })</script>`)
        )
        const { text = "" } = yield* seen({ action: "open", url: "http://site.test/app#newsletter" })
        const input = { action: "click", ref: refOf(text, /button "Confirm"/u) } as const
        const held = yield* worker.hold(session_id, CallId.make("app-1"), input)
        assert.deepStrictEqual([held.address, held.title], ["http://site.test/app#newsletter", "Leave the newsletter"])
        yield* Deferred.succeed(rename.open, undefined)
        yield* Deferred.await(renamed.asked)
        const titled = yield* browse(input, approved("app-1"))
        assert.match(
          JSON.stringify(titled.output),
          /was titled .*Leave the newsletter.*is titled .*Leave for ever.*Nothing was done/u
        )
        yield* seen({ action: "open", url: "http://site.test/app#account" })
        const moved = yield* browse(input, approved("app-1"))
        assert.match(JSON.stringify(moved.output), /was at .*#newsletter.*is at .*#account.*Nothing was done/u)
        assert.notInclude(asked, "/echo?app-clicked")
      })
    )

    it.effect(
      "names the site of a frame also after a look at a part in it, and does not act once it went elsewhere",
      () =>
        Effect.gen(function* () {
          const { asked, serve, worker } = yield* Rig
          const { browse, seen, session_id } = yield* OneAgent
          const [leave, left] = [yield* gate("/leave"), yield* gate("/left")]
          const inner = pageOf(
            `<div role=group aria-label=box><button onclick="fetch('/echo?inner')">OK</button></div>`
          )
          serve.set("/inner-one", inner).set("/inner-two", inner)
          serve.set(
            "/outer-box",
            pageOf(`<p>outer</p><iframe src="http://other.test/inner-one"></iframe><script>fetch("/leave").then(() => {
            const frame = document.querySelector("iframe"); frame.onload = () => fetch("/left"); frame.src = "http://site.test/inner-two" })</script>`)
          )
          const { text = "" } = yield* seen({ action: "open", url: "http://site.test/outer-box" })
          const whole = yield* browse({ action: "click", ref: refOf(text, /iframe/u) })
          assert.match(JSON.stringify(whole.output), /there is a frame in iframe .*name the element in the frame/u)
          const narrow = yield* seen({ action: "snapshot", ref: refOf(text, /group "box"/u) })
          const input = { action: "click", ref: refOf(narrow.text ?? "", /button "OK"/u) } as const
          const held = yield* worker.hold(session_id, CallId.make("box-1"), input)
          assert.deepInclude(held, { site: "site.test", frame: "other.test" })
          yield* Deferred.succeed(leave.open, undefined)
          yield* Deferred.await(left.asked)
          // The new document of the frame gives its elements the same refs.
          const after = yield* seen({ action: "snapshot" })
          assert.strictEqual(refOf(after.text ?? "", /button "OK"/u), input.ref)
          const moved = yield* browse(input, approved("box-1"))
          assert.match(
            JSON.stringify(moved.output),
            /the frame of button .*OK.* is at another address. Nothing was done/u
          )
          assert.notInclude(asked, "/echo?inner")
        })
    )

    it.effect("presses no key while the focus is in a frame, however a page names its elements", () =>
      Effect.gen(function* () {
        const { asked, serve, worker } = yield* Rig
        const { browse, seen, session_id } = yield* OneAgent
        serve.set("/inner-focus", pageOf(`<button autofocus onclick="fetch('/echo?key-paid')">Pay</button>`))
        serve.set(
          "/outer-focus",
          pageOf(`<img name=activeElement><img name=title><iframe src="http://site.test/inner-focus"></iframe>
            <script>onload = () => document.querySelector("iframe").focus()</script>`)
        )
        const { title } = yield* seen({ action: "open", url: "http://site.test/outer-focus" })
        assert.strictEqual(title, "Echo")
        yield* seen({ action: "snapshot" })
        const input = { action: "press", key: "Enter" } as const
        const refused = yield* Effect.flip(worker.hold(session_id, CallId.make("key-1"), input))
        assert.match(refused.problem, /the focus is in a frame: name the element that takes the key by its ref/u)
        assert.match(JSON.stringify((yield* browse(input)).output), /the focus is in a frame/u)
        assert.notInclude(asked, "/echo?key-paid")
      })
    )

    it.effect("shows and compares the whole text of an element of which a snapshot showed only some levels", () =>
      Effect.gen(function* () {
        const { asked, serve, worker } = yield* Rig
        const { browse, seen, session_id } = yield* OneAgent
        const [swap, swapped] = [yield* gate("/deep-swap"), yield* gate("/deep-swapped")]
        serve.set(
          "/deep",
          pageOf(`<div style="cursor:pointer" onclick="fetch('/echo?deep-clicked')"><p>Keep</p><p>nothing</p></div><p>below</p><script>
            fetch("/deep-swap").then(() => { document.querySelector("p + p").textContent = "all"; fetch("/deep-swapped") })</script>`)
        )
        yield* seen({ action: "open", url: "http://site.test/deep" })
        const { text = "" } = yield* seen({ action: "snapshot", depth: 1 })
        assert.notInclude(text, "nothing")
        const input = { action: "click", ref: refOf(text, /generic .*cursor=pointer/u) } as const
        const held = yield* worker.hold(session_id, CallId.make("deep-1"), input)
        assert.strictEqual(held.element.name, "Keep nothing")
        yield* Deferred.succeed(swap.open, undefined)
        yield* Deferred.await(swapped.asked)
        for (const call of [undefined, approved("deep-1")])
          assert.match(
            JSON.stringify((yield* browse(input, call)).output),
            /the page has changed: generic .*Keep nothing.* is now generic .*Keep all.*Nothing was done/u
          )
        assert.notInclude(asked, "/echo?deep-clicked")
      })
    )

    it.effect("does not do with one input what a person approved of another", () =>
      Effect.gen(function* () {
        const { asked, serve, worker } = yield* Rig
        const { browse, seen, session_id } = yield* OneAgent
        serve.set("/two", pageOf(`<button>Cancel</button><button onclick="fetch('/echo?two-paid')">Pay</button>`))
        const { text = "" } = yield* seen({ action: "open", url: "http://site.test/two" })
        const [cancel, pay] = [refOf(text, /Cancel/u), refOf(text, /Pay/u)]
        yield* worker.hold(session_id, CallId.make("two-1"), { action: "click", ref: cancel })
        for (const input of [
          { action: "click", ref: pay },
          { action: "press", ref: cancel, key: "Enter" }
        ]) {
          const { output } = yield* browse(input, approved("two-1"))
          assert.match(JSON.stringify(output), /a person approved another input of this call. Nothing was done/u)
        }
        assert.notInclude(asked, "/echo?two-paid")
        yield* seen({ action: "click", ref: cancel })
      })
    )
  })
})
