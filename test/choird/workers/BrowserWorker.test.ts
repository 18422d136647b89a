import { spawnSync } from "node:child_process"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { SessionId } from "#schema/Ids.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { BROWSER_IDLE_MS_MAX, BROWSERS_MAX, BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { agent, chromiums, layerRig, pageOf, Rig } from "../../support/browserRig.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { LAYER_MS_MAX, SIZE } from "../../support/size.ts"
import { layerDialer } from "../../support/web.ts"

const sessionOf = (number: number) => SessionId.make(String(number).padStart(16, "0"))

/** Bytes that a page writes to the console at a time; each message is sent to the program that drives the browser. */
const CONSOLE_BYTES = 2 ** 27
/** What choird may grow by while a page does so: less than one message. */
const GROWTH_BYTES_MAX = 2 ** 26

const TICK_MS = 20
/** Lets the clock of a test pass like any other beside processes that take their time. */
const passing = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, TICK_MS))).pipe(
  Effect.andThen(TestClock.adjust(TICK_MS)),
  Effect.forever
)

const missing = ensureDebianPackages(["chromium"], "the browsers of agents")

describe.skipIf(missing !== undefined)("BrowserWorker", () => {
  it.effect("gives no more than so many sessions a browser, and one to the next when another has ended", () =>
    Effect.gen(function* () {
      const worker = yield* BrowserWorker
      const first = yield* Scope.make()
      const epoch = yield* Effect.scope
      // They are all on their way, which counts as well.
      yield* Effect.forkChild(worker.of(sessionOf(0), first))
      for (let number = 1; number < BROWSERS_MAX; number++) yield* Effect.forkChild(worker.of(sessionOf(number), epoch))
      yield* Effect.yieldNow
      const refused = yield* Effect.flip(worker.of(sessionOf(BROWSERS_MAX), epoch))
      assert.match(refused.message, /8 agents already have a browser open, which is the maximum/u)
      yield* Scope.close(first, Exit.void)
      const next = yield* Effect.forkChild(worker.of(sessionOf(BROWSERS_MAX), epoch))
      yield* Effect.yieldNow
      assert.isUndefined(next.pollUnsafe())
      yield* Fiber.interrupt(next)
    }).pipe(
      Effect.provide(
        Layer.provide(BrowserWorker.layer, [
          Layer.mock(Cgroups, { enforced: { cpus: true, memory_mb: true, pids: true }, create: () => Effect.never }),
          layerDialer({})
        ])
      )
    )
  )

  it.effect("ends a browser that nobody has used for an hour, and opens another one", () => {
    const used = Effect.gen(function* () {
      const epoch = yield* Effect.scope
      const { browse, seen } = yield* agent(epoch)
      yield* seen({ action: "open", url: "http://site.test/echo?before" })
      yield* TestClock.adjust(BROWSER_IDLE_MS_MAX / 2)
      yield* seen({ action: "snapshot" })
      yield* TestClock.adjust(BROWSER_IDLE_MS_MAX - 600_000)
      assert.match((yield* seen({ action: "snapshot" })).text ?? "", /before/u)
      yield* TestClock.adjust(BROWSER_IDLE_MS_MAX)
      const { output } = yield* browse({ action: "snapshot" })
      assert.match(JSON.stringify(output), /no page is open/u)
    })
    // A browser's control group is looked at again and again until it is empty, which takes time of the clock.
    return Effect.raceFirst(Effect.provide(used, layerRig), passing)
  })

  layer(layerRig, { timeout: LAYER_MS_MAX, excludeTestServices: true })((suite) => {
    suite.effect("ends one agent's browser with its Chromium, and leaves every other as it was", () =>
      Effect.gen(function* () {
        const epoch = yield* Scope.make()
        const [ada, bob] = [yield* agent(epoch), yield* agent(epoch)]
        yield* ada.seen({ action: "open", url: "http://site.test/echo?ada" })
        const hers = chromiums()
        yield* bob.seen({ action: "open", url: "http://site.test/echo?bob" })
        spawnSync("kill", ["-9", ...hers])
        const gone = yield* ada.browse({ action: "snapshot" })
        assert.strictEqual(gone.status, "error")
        assert.match(JSON.stringify(gone.output), /the browser ended|no page is open/u)
        assert.match((yield* bob.seen({ action: "snapshot" })).text ?? "", /bob/u)
        assert.match((yield* ada.seen({ action: "open", url: "http://site.test/echo?again" })).text ?? "", /again/u)
        yield* Scope.close(epoch, Exit.void)
      })
    )

    suite.effect("keeps what a page makes its browser hold out of choird, whatever happens to the browser", () =>
      Effect.gen(function* () {
        const { serve } = yield* Rig
        const epoch = yield* Scope.make()
        const [eve, bob] = [yield* agent(epoch), yield* agent(epoch)]
        yield* bob.seen({ action: "open", url: "http://site.test/echo?bob" })
        serve.set(
          "/heavy",
          pageOf(`<script>document.body.innerHTML = "<p>x</p>".repeat(${SIZE.domNodes}); document.title = "t".repeat(1e7)
            for (let i = 0; i < 4; i++) console.log("x".repeat(${CONSOLE_BYTES}))</script>`)
        )
        const before = process.memoryUsage().rss
        yield* eve.browse({ action: "open", url: "http://site.test/heavy" })
        for (const action of ["snapshot", "read", "screenshot"]) yield* eve.browse({ action })
        assert.isBelow(process.memoryUsage().rss - before, GROWTH_BYTES_MAX)
        assert.match((yield* bob.seen({ action: "snapshot" })).text ?? "", /bob/u)
        yield* Scope.close(epoch, Exit.void)
      })
    )
  })
})
