import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { awaitSilence, look } from "#src/choird/agents/Liveness.ts"

const watch = Effect.fnUntraced(function* (threshold_ms: number) {
  const heard = { ms: 0 }
  const fiber = yield* Effect.forkChild(
    awaitSilence(() => heard.ms, Effect.succeed(threshold_ms)),
    { startImmediately: true }
  )
  const hear = Effect.map(Clock.currentTimeMillis, (now_ms) => void (heard.ms = now_ms))
  return { fiber, hear }
})

describe("Liveness", () => {
  it.effect("finds silence beyond the threshold within half a second, and none before (R7)", () =>
    Effect.gen(function* () {
      const { fiber, hear } = yield* watch(10_000)
      for (let beat = 0; beat < 20; beat += 1) {
        yield* TestClock.adjust("9900 millis")
        yield* hear
      }
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("500 millis")
      assert.isAtMost(yield* Fiber.join(fiber), 10_500)
    })
  )

  it("starts the clock anew after a pause of choird itself, since it heard nobody meanwhile (D8)", () => {
    const before = { heard_ms: 1000, looked_ms: 9000 }
    assert.deepStrictEqual(look(before, 9500), { heard_ms: 1000, looked_ms: 9500 })
    assert.deepStrictEqual(look(before, 11_500), { heard_ms: 1000, looked_ms: 11_500 })
    assert.deepStrictEqual(look(before, 11_501), { heard_ms: 11_501, looked_ms: 11_501 })
    assert.deepStrictEqual(look(before, 3_600_000), { heard_ms: 3_600_000, looked_ms: 3_600_000 })
  })
})
