import { assert, describe, it } from "@effect/vitest"
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

  it("lets an agent start no more than twelve times an hour (R9)", () => {
    const slow = Array.from({ length: 12 }, (_, index) => index * 3)
    assert.isUndefined(after(slow.slice(0, 11)).tripped)
    assert.strictEqual(after(slow).tripped, "it crashed 12 times in an hour")
    assert.strictEqual(after(Array.from({ length: 500 }, (_, index) => index * 6)).crashes_ms.length, 10)
  })
})
