import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { BREAKER, type Breaker, crash } from "#src/choird/agents/Breaker.ts"

const MINUTE_MS = 60_000
/** Crashes at these minutes; the breaker after the last one. */
const after = (minutes: ReadonlyArray<number>): Breaker =>
  minutes.reduce((breaker, minute) => crash(breaker, minute * MINUTE_MS), BREAKER)

describe("Breaker", () => {
  it("trips at the third crash within five minutes, and not a moment later (R9)", () => {
    assert.isUndefined(after([0, 1]).tripped)
    assert.strictEqual(after([0, 1, 4.99]).tripped, "it crashed 3 times in 5 minutes")
    assert.isUndefined(after([0, 1, 5]).tripped)
    assert.strictEqual(after([0, 1, 5, 5.5]).tripped, "it crashed 3 times in 5 minutes")
  })

  it.prop(
    "never lets an agent start a thirteenth time within an hour, nor after a third crash within five minutes (R9)",
    [
      Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 * MINUTE_MS }))).check(
        Schema.isMaxLength(200)
      )
    ],
    ([gaps_ms]) => {
      // A person starts it at 0; each crash that does not trip the breaker is followed by a start.
      const starts = [0]
      const crashes: Array<number> = []
      let breaker = BREAKER
      let now_ms = 0
      for (const gap_ms of gaps_ms) {
        now_ms += gap_ms
        breaker = crash(breaker, now_ms)
        crashes.push(now_ms)
        const recent = crashes.filter((at_ms) => now_ms - at_ms < 5 * MINUTE_MS).length
        const hourly = crashes.filter((at_ms) => now_ms - at_ms < 60 * MINUTE_MS).length
        assert.strictEqual(breaker.tripped !== undefined, recent >= 3 || hourly >= 12)
        if (breaker.tripped !== undefined) break
        starts.push(now_ms)
      }
      for (const start of starts)
        assert.isAtMost(starts.filter((at) => at >= start && at - start < 60 * MINUTE_MS).length, 12)
    }
  )

  it("lets an agent start no more than twelve times an hour (R9)", () => {
    const slow = Array.from({ length: 12 }, (_, index) => index * 3)
    assert.isUndefined(after(slow.slice(0, 11)).tripped)
    assert.strictEqual(after(slow).tripped, "it crashed 12 times in an hour")
    assert.strictEqual(after(Array.from({ length: 500 }, (_, index) => index * 6)).crashes_ms.length, 10)
  })
})
