import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { chromium } from "playwright-core"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import { agent, layerSecureRig, pageOf, Rig, TAKEN_FOR_SECURE } from "../../support/browserRig.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { httpServer } from "../../support/web.ts"

/** Asks for what it must not reach, and would answer for the site. */
const workerAt = (port: number) => `self.addEventListener("install", () => {
  self.skipWaiting()
  for (const place of ["127.0.0.1", "localhost", "[::1]", "inner.test"])
    fetch("http://" + place + ":${port}/w", { mode: "no-cors" }).catch(() => {})
})
self.addEventListener("fetch", (event) => event.respondWith(new Response("of the worker")))`

/** The ways of a page to register one, each by the function of another window, which the page may have untouched. */
const page = pageOf(`<p id=out></p><script>
const own = navigator.serviceWorker
const of = (window, name) => window.ServiceWorkerContainer.prototype.register.call(own, "/worker.js?" + name)
const added = (tag, set) => { const made = document.createElement(tag); set?.(made); document.body.append(made); return made }
const tries = {
  plain: () => own.register("/worker.js?plain"),
  type: () => ServiceWorkerContainer.prototype.register.call(own, "/worker.js?type"),
  frame: () => of(added("iframe").contentWindow, "frame"),
  written: () => { const { contentDocument, contentWindow } = added("iframe"); contentDocument.write("<p>"); contentDocument.close(); return of(contentWindow, "written") },
  srcdoc: async () => of(await new Promise((done) => added("iframe", (it) => { it.srcdoc = "<p>"; it.onload = () => done(it.contentWindow) })), "srcdoc"),
  object: () => of(added("object", (it) => { it.data = "about:blank" }).contentWindow, "object"),
  popup: () => of(window.open("about:blank"), "popup"),
}
;(async () => {
  for (const register of Object.values(tries)) try { await register() } catch {}
  document.querySelector("#out").textContent = "all tried, secure " + isSecureContext
})()
</script>`)

const missing = ensureDebianPackages(["chromium"], "service workers")

describe.skipIf(missing !== undefined)("service workers", () => {
  layer(layerSecureRig, { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect("are registered by no page, whatever it tries, and reach nothing (R72)", () =>
      Effect.gen(function* () {
        const { serve, trap, workers } = yield* Rig
        serve.set("/registers", page)
        const epoch = yield* Scope.make()
        const { seen } = yield* agent(epoch)
        let { text = "" } = yield* seen({ action: "open", url: "http://site.test/registers" })
        // The page says when it has tried everything; a new window would be the current tab.
        while (!text.includes("all tried")) text = (yield* seen({ action: "tabs", tab: 1 })).text ?? ""
        assert.include(text, "all tried, secure true")
        assert.match(
          (yield* seen({ action: "open", url: "http://site.test/echo?later" })).text ?? "",
          /asked: .*later/u
        )
        assert.deepStrictEqual(workers, [])
        assert.strictEqual(trap.hits(), 0)
        yield* Scope.close(epoch, Exit.void)
      })
    )

    it.effect("are registered by the same page where nothing keeps it from that, so that the test above can fail", () =>
      Effect.gen(function* () {
        const { answer, serve, trap, workers } = yield* Rig
        serve.set("/worker.js?plain", workerAt(trap.port))
        // A proxy is asked for whole addresses.
        const port = yield* httpServer((request, response) => {
          const { pathname, search } = new URL(request.url ?? "", "http://site.test")
          request.url = pathname + search
          answer(request, response)
        })
        const browser = yield* Effect.acquireRelease(
          Effect.promise(() =>
            chromium.launch({
              executablePath: chromiumProgram() ?? "chromium",
              chromiumSandbox: false,
              args: [TAKEN_FOR_SECURE],
              proxy: { server: `http://127.0.0.1:${port}` }
            })
          ),
          (open) => Effect.promise(() => open.close())
        )
        yield* Effect.promise(async () => {
          const tab = await browser.newPage()
          await tab.goto("http://site.test/registers", { waitUntil: "commit" })
          await tab.getByText("all tried").waitFor({ timeout: 60_000 })
        })
        const names = ["plain", "type", "frame", "written", "srcdoc", "object", "popup"]
        assert.deepStrictEqual(
          workers,
          names.map((name) => `/worker.js?${name}`)
        )
      })
    )
  })
})
