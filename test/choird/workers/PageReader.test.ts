import type { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PageReader } from "#src/choird/workers/PageReader.ts"

/** A thread that is never done with its page. */
const ENDLESS = new URL(
  `data:text/javascript,${encodeURIComponent(`import { parentPort } from "node:worker_threads"
    parentPort.once("message", () => { for (;;); })
    parentPort.postMessage({ _tag: "Ready" })`)}`
)

describe("a page that takes too long", () => {
  it.live("is refused when its thread has ended, so that it costs nothing from then on", () =>
    Effect.gen(function* () {
      const threads: Array<{ ended: boolean }> = []
      const look = (worker: Worker) => {
        const thread = { ended: false }
        threads.push(thread)
        worker.once("exit", () => (thread.ended = true))
      }
      process.on("worker", look)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.off("worker", look)))
      const { read } = yield* PageReader
      const refused = yield* Effect.flip(read({ html: "<p>x", url: "http://site.test/" }))
      assert.include(refused.message, "it takes more than 1 ms")
      assert.deepStrictEqual(threads, [{ ended: true }])
    }).pipe(Effect.provide(PageReader.layer({ pageMs: 1, program: ENDLESS })), Effect.scoped)
  )
})
