/** The bodies of requests, whose memory is used again: that shows in no byte. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeRequestBodies } from "#src/agent/model/RequestBodies.ts"
import { makeRandom } from "../../support/history.ts"

const text = (body: Uint8Array) => Buffer.from(body).toString()
const sent = (body: Uint8Array) => Effect.sync(() => text(body))
const PIECES = ["a", "é", "漢字 🙂", "", "x".repeat(3000)]

describe("a body", () => {
  it.effect("has the bytes of its parts, whatever the ones before it had", () =>
    Effect.gen(function* () {
      const { use } = makeRequestBodies()
      const random = makeRandom(7)
      let parts: ReadonlyArray<string> = []
      for (let request = 0; request < 200; request++) {
        const kept = parts.slice(0, random() < 0.2 ? Math.floor(random() * parts.length) : parts.length)
        parts = [...kept, ...PIECES.filter(() => random() < 0.5)]
        assert.strictEqual(yield* use("lane", parts, sent), parts.join(""))
      }
    })
  )

  it.effect("does not change while it is sent, nor after a request that failed", () =>
    Effect.gen(function* () {
      const { use } = makeRequestBodies()
      yield* use("lane", ["one"], sent)
      const goesOn = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(
        use("lane", ["two"], (body) => Effect.map(Deferred.await(goesOn), () => text(body))),
        { startImmediately: true }
      )
      let failed: Uint8Array = new Uint8Array()
      yield* Effect.exit(
        use("lane", ["six"], (body) => {
          failed = body
          return Effect.fail("refused")
        })
      )
      assert.strictEqual(yield* use("lane", ["ten"], sent), "ten")
      yield* Deferred.succeed(goesOn, undefined)
      assert.strictEqual(yield* Fiber.join(first), "two")
      assert.strictEqual(text(failed), "six")
    })
  )
})
