import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Schema, Scope } from "effect"
import { WEB_TEXT_BYTES_MAX } from "#src/shared/web/hostQueries.ts"
import { agent, chromiums, holdings, layerRig, lineOf, pageOf, refOf, Rig } from "../../support/browserRig.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { LAYER_MS_MAX, SIZE } from "../../support/size.ts"
import { type PageFixture, PAGES, type Step } from "./pageFixtures.ts"

/** Looks of the scripted model at a page that may still change. */
const LOOKS_MAX = 50
const inputOf = ({ action, input, on }: Step, text: string) => ({
  action,
  ...(on === undefined ? {} : { ref: refOf(text, on) }),
  ...(input as { readonly [key: string]: Schema.Json } | undefined)
})

const play = Effect.fnUntraced(function* ({ html, notes, shows, steps = [] }: PageFixture, path: string) {
  const epoch = yield* Scope.make()
  const { serve } = yield* Rig
  serve.set(path, html)
  const { seen } = yield* agent(epoch)
  let now = yield* seen({ action: "open", url: `http://site.test${path}` })
  const noted = [...(now.notes ?? [])]
  // What a page does by itself may take a moment: the model looks again.
  const until = Effect.fnUntraced(function* (wanted: (text: string) => boolean) {
    for (let looks = 0; looks < LOOKS_MAX && !wanted(now.text ?? ""); looks++) now = yield* seen({ action: "tabs" })
  })
  for (const step of steps) {
    const { on } = step
    if (on !== undefined) yield* until((text) => lineOf(text, on) !== undefined)
    now = yield* seen(inputOf(step, now.text ?? ""))
    noted.push(...(now.notes ?? []))
  }
  yield* until((text) => shows.test(text))
  assert.match(now.text ?? "", shows)
  if (notes !== undefined) assert.match(noted.join("\n"), notes)
  yield* Scope.close(epoch, Exit.void)
})

/** Waits until no more is held than before: what has ended may be on its way out for a moment. */
const heldAsBefore = (before: ReturnType<typeof holdings>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { descriptors, folders, groups, processes } = holdings()
    return processes + folders + groups === 0 && descriptors <= before.descriptors
      ? Effect.void
      : Effect.andThen(
          Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
          heldAsBefore(before)
        )
  })

const rssMiB = () => Math.round(process.memoryUsage.rss() / 1024 / 1024)

/** All pages, each with a browser of its own, on a machine that is busy. */
const PAGES_MS_MAX = 300_000 + (PAGES.length / SIZE.pageStep) * 30_000

/** All starts and stops of a browser, on a machine that is busy. */
const CYCLES_MS_MAX = 300_000 + SIZE.browserCycles * 10_000

const missing = ensureDebianPackages(["chromium"], "choir.web.browse")

describe.skipIf(missing !== undefined)("choir.web.browse", () => {
  layer(layerRig, { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    // Of the tests that need no browser of their own; it ends before the last test counts what is left.
    let kept: Scope.Closeable | undefined
    let shared: Effect.Success<ReturnType<typeof agent>> | undefined
    const oneAgent = Effect.gen(function* () {
      if (shared !== undefined) return shared
      kept = yield* Scope.make()
      shared = yield* agent(kept)
      return shared
    })
    it.effect("starts Chromium as a user of its own, in its own sandbox, and answers with the page", () =>
      Effect.gen(function* () {
        const { seen } = yield* oneAgent
        const { tab, text, title, url } = yield* seen({ action: "open", url: "http://site.test/echo?first" })
        assert.deepStrictEqual([title, url, tab], ["Echo", "http://site.test/echo?first", "1 of 1"])
        assert.match(text ?? "", /asked: \/echo\?first/u)
        const main = chromiums().map((pid) => ({ pid, args: readFileSync(`/proc/${pid}/cmdline`, "utf8") }))
        assert.isNotEmpty(main)
        if (process.getuid?.() === 0)
          for (const { pid } of main)
            assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), /^Uid:\s+1900065537\s/mu)
        assert.isFalse(main.some(({ args }) => args.includes("--no-sandbox")))
      })
    )

    it.effect(
      "leads a scripted model through 40 kinds of pages",
      () =>
        Effect.gen(function* () {
          assert.isAtLeast(PAGES.length, 40)
          const failures = yield* Effect.forEach(
            PAGES.filter((_, index) => index % SIZE.pageStep === 0),
            (fixture, index) =>
              Effect.as(play(fixture, `/page/${index}`), []).pipe(
                Effect.catchDefect((defect) => Effect.succeed([`${fixture.name}: ${String(defect)}`]))
              ),
            { concurrency: 3 }
          )
          assert.deepStrictEqual(failures.flat(), [])
        }),
      PAGES_MS_MAX
    )

    it.effect("names what it acted on so that the work can be done again without refs", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        serve.set(
          "/replay",
          pageOf(`<form action="/echo"><label>Name <input name=n></label><button>Send it</button></form>`)
        )
        const { seen } = yield* oneAgent
        const opened = yield* seen({ action: "open", url: "http://site.test/replay" })
        const typed = yield* seen({ action: "type", ref: refOf(opened.text ?? "", /textbox/u), text: "Ada" })
        const sent = yield* seen({ action: "click", ref: refOf(typed.text ?? "", /button/u) })
        assert.deepStrictEqual(
          [typed.locator, sent.locator],
          ["getByRole('textbox', { name: 'Name' })", "getByRole('button', { name: 'Send it' })"]
        )
        assert.match(sent.text ?? "", /n=Ada/u)
      })
    )
    it.effect("lets a page reach nothing but the public network, by no way that a browser has (R72)", () =>
      Effect.gen(function* () {
        const { asked, serve, trap } = yield* Rig
        const { port } = trap
        const places = [
          `127.0.0.1:${port}`,
          `localhost:${port}`,
          `[::1]:${port}`,
          `inner.test:${port}`,
          `0.0.0.0:${port}`,
          `[::ffff:127.0.0.1]:${port}`
        ]
        const tries = places
          .map(
            (
              place
            ) => `<img src="http://${place}/i"><script src="http://${place}/s"></script><link rel=stylesheet href="http://${place}/c"><link rel=prefetch href="http://${place}/p"><link rel=preconnect href="http://${place}/"><iframe src="http://${place}/f"></iframe><video src="http://${place}/v"></video>
          <script>fetch("http://${place}/x",{mode:"no-cors"}).catch(()=>{}); navigator.sendBeacon("http://${place}/b"); try{new WebSocket("ws://${place}/w")}catch{} try{new EventSource("http://${place}/e")}catch{}</script>`
          )
          .join("")
        serve.set(
          "/tries",
          pageOf(`<p id=out>tried</p>${tries}<script>
            try { const peer = new RTCPeerConnection({iceServers:[{urls:"stun:127.0.0.1:${port}"},{urls:"turn:127.0.0.1:${port}?transport=tcp",username:"a",credential:"b"}]}); peer.createDataChannel("x"); peer.createOffer().then(o=>peer.setLocalDescription(o)) } catch {}
            navigator.serviceWorker?.register("/echo").catch(()=>{}); new Image().src="http://rebind.test:${port}/one"</script>`)
        )
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const tried = yield* seen({ action: "open", url: "http://site.test/tries" })
        assert.match((tried.notes ?? []).join("\n"), /not on the public network/u)
        yield* seen({ action: "open", url: `http://rebind.test:${port}/echo?two` }).pipe(Effect.exit)
        for (const url of [
          ...places.map((place) => `http://${place}/`),
          "http://site.test/in",
          "http://169.254.169.254/latest/"
        ]) {
          const { status } = yield* browse({ action: "open", url })
          const now = yield* browse({ action: "snapshot" })
          assert.isTrue(status === "error" || !JSON.stringify(now.output).includes("canary"), url)
        }
        for (const url of [
          "file:///etc/passwd",
          "chrome://version",
          "javascript:alert(1)",
          "about:blank",
          "view-source:http://site.test/",
          "http://a:b@site.test/"
        ])
          assert.strictEqual((yield* browse({ action: "open", url })).status, "error", url)
        assert.strictEqual(trap.hits(), 0)
        assert.include(asked, "/tries")
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect("keeps the pages of agents apart, and ends them with their epoch (R73)", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        serve.set(
          "/store",
          pageOf(
            `<p id=o></p><script>const n=(localStorage.n||0)*1+1; localStorage.n=n; document.cookie="c="+n; o.textContent="visit "+n+" "+document.cookie</script>`
          )
        )
        const [one, two] = [yield* Scope.make(), yield* Scope.make()]
        const [ada, bob] = [yield* agent(one), yield* agent(two)]
        const store = { action: "open", url: "http://site.test/store" }
        yield* ada.seen(store)
        assert.match((yield* ada.seen(store)).text ?? "", /visit 2 c=2/u)
        assert.match((yield* bob.seen(store)).text ?? "", /visit 1 c=1/u)
        assert.strictEqual((yield* bob.seen({ action: "tabs" })).tab, "1 of 1")
        yield* Scope.close(one, Exit.void)
        assert.match((yield* bob.seen(store)).text ?? "", /visit 2 c=2/u)
        // The next start of the same session finds nothing of the one before.
        const next = yield* Scope.make()
        const again = yield* agent(next, ada.session_id)
        assert.match((yield* again.seen(store)).text ?? "", /visit 1 c=1/u)
        yield* Scope.close(next, Exit.void)
        yield* Scope.close(two, Exit.void)
      })
    )

    it.effect("answers in parts that fit a prompt, of a page of any size, and ends one that cannot be shown", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        serve.set("/long", pageOf(Array.from({ length: 2000 }, (_, index) => `<p>paragraph ${index}</p>`).join("")))
        const first = yield* seen({ action: "open", url: "http://site.test/long" })
        assert.isAtMost(Buffer.byteLength(first.text ?? ""), WEB_TEXT_BYTES_MAX)
        const second = yield* seen({ action: "snapshot", offset: first.next_offset ?? 0 })
        assert.notInclude(second.text ?? "", "paragraph 1\n")
        assert.isAbove(second.next_offset ?? 0, first.next_offset ?? 0)
        serve.set("/huge", pageOf(`<script>document.body.innerHTML="<p>x</p>".repeat(${SIZE.domNodes})</script>`))
        const huge = yield* browse({ action: "open", url: "http://site.test/huge" })
        assert.isTrue(huge.status === "error" || JSON.stringify(huge.output).length < 3 * WEB_TEXT_BYTES_MAX)
        yield* Scope.close(epoch, Exit.void)
        const next = yield* Scope.make()
        yield* (yield* agent(next)).seen({ action: "open", url: "http://site.test/echo?after" })
        yield* Scope.close(next, Exit.void)
      })
    )

    it.effect("refuses what it cannot do, in words for a model", () =>
      Effect.gen(function* () {
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const refused = (input: { readonly [key: string]: Schema.Json }) =>
          Effect.map(browse(input), ({ output, status }) => [status, JSON.stringify(output)].join(" "))
        assert.match(yield* refused({ action: "snapshot" }), /no page is open: open one first/u)
        yield* seen({ action: "open", url: "http://site.test/echo?x" })
        assert.match(yield* refused({ action: "click", ref: "e9999" }), /there is no element e9999/u)
        assert.match(yield* refused({ action: "click" }), /click needs a ref/u)
        assert.match(yield* refused({ action: "open" }), /open needs a url/u)
        assert.match(yield* refused({ action: "tabs", tab: 4 }), /there is no tab 4/u)
        assert.match(yield* refused({ action: "open", url: "http://nowhere.test/" }), /nowhere\.test has no address/u)
        const shot = yield* seen({ action: "open", url: "http://site.test/echo?y" }).pipe(
          Effect.andThen(seen({ action: "screenshot" }))
        )
        assert.strictEqual(Buffer.from(shot.picture ?? "", "base64").toString("hex", 0, 3), "ffd8ff")
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect("names every site whose words are in a tab: frames, and the page that wrote one without an address", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        serve.set("/outer", pageOf(`<p>outer</p><iframe src="http://other.test/echo?inner"></iframe>`))
        serve.set(
          "/blank",
          pageOf(`<button onclick="window.open('about:blank').document.write('<p>pay eve</p>')">Open</button>`)
        )
        serve.set(
          "/blob",
          pageOf(`<script>location = URL.createObjectURL(new Blob(["<p>pay eve</p>"], {type: "text/html"}))</script>`)
        )
        const { browse, seen } = yield* oneAgent
        const outer = yield* seen({ action: "open", url: "http://site.test/outer" })
        assert.deepStrictEqual(outer.sites, ["other.test", "site.test"])
        const { text = "" } = yield* seen({ action: "open", url: "http://other.test/blank" })
        const written = yield* seen({ action: "click", ref: refOf(text, /Open/u) })
        assert.strictEqual(written.url, "about:blank")
        assert.deepStrictEqual(written.sites, ["other.test"])
        const blob = yield* seen({ action: "open", url: "http://other.test/blob" })
        assert.deepStrictEqual(blob.sites, ["other.test"])
        const failing = yield* browse({ action: "click", ref: "e999" })
        assert.deepInclude(failing.output, { sites: ["other.test"] })
      })
    )

    it.effect("takes no more of a page's title than it shows, whatever the page makes of its functions", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        serve.set(
          "/title",
          pageOf(
            `<script>String.prototype.slice = function () { return "x".repeat(1e6) }; document.title = "t".repeat(1e6)</script>`
          )
        )
        const { seen } = yield* oneAgent
        const { title } = yield* seen({ action: "open", url: "http://site.test/title" })
        assert.strictEqual(title, "t".repeat(300))
      })
    )

    it.effect("does not know whether a page took a click in whose middle Chromium was killed", () =>
      Effect.gen(function* () {
        const { hanging, serve } = yield* Rig
        serve.set(
          "/blocks",
          pageOf(
            `<button onclick="const r = new XMLHttpRequest(); r.open('GET', '/never', false); r.send()">Pay</button>`
          )
        )
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const { text = "" } = yield* seen({ action: "open", url: "http://site.test/blocks" })
        const click = yield* Effect.forkChild(browse({ action: "click", ref: refOf(text, /Pay/u) }))
        yield* Deferred.await(hanging)
        spawnSync("kill", ["-9", ...chromiums()])
        const { output, status } = yield* Fiber.join(click)
        assert.strictEqual(status, "timeout")
        assert.match(JSON.stringify(output), /the browser ended.*It is unknown whether the page received this action/u)
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect(
      "says that Chromium was killed, starts another one for the next page, and leaves nothing behind (R65)",
      () =>
        Effect.gen(function* () {
          const epoch = yield* Scope.make()
          const { browse, seen } = yield* agent(epoch)
          yield* seen({ action: "open", url: "http://site.test/echo?before" })
          spawnSync("kill", ["-9", ...chromiums()])
          const after = yield* browse({ action: "snapshot" })
          assert.match(JSON.stringify(after), /the browser ended|no page is open/u)
          assert.match((yield* seen({ action: "open", url: "http://site.test/echo?again" })).text ?? "", /again/u)
          yield* Scope.close(epoch, Exit.void)
          if (kept !== undefined) yield* Scope.close(kept, Exit.void)
          const cycle = Effect.gen(function* () {
            const one = yield* Scope.make()
            const { seen } = yield* agent(one)
            yield* seen({ action: "open", url: "http://site.test/echo?cycle" })
            yield* Scope.close(one, Exit.void)
          })
          // The first one opens what stays, such as the thread that reads pages.
          yield* cycle
          yield* heldAsBefore({ ...holdings(), descriptors: Infinity })
          const [before, rss] = [holdings(), rssMiB()]
          yield* Effect.forEach(Array.from({ length: SIZE.browserCycles }), () => cycle, { concurrency: 2 })
          yield* heldAsBefore(before)
          yield* Effect.logInfo(`${SIZE.browserCycles} browsers left`, {
            before,
            after: holdings(),
            rss,
            rss_after: rssMiB()
          })
        }),
      CYCLES_MS_MAX
    )
  })
})
