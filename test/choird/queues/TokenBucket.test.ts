import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { take, type TokenBucket } from "#src/choird/queues/TokenBucket.ts"

const rate = { perSecond: 100, burst: 200 }
const Steps = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: -50, maximum: 2000 })))

describe("take", () => {
  it("grants the burst, then one every ten milliseconds (R47)", () => {
    let bucket: TokenBucket = { tokens: rate.burst, at_ms: 0 }
    const at = (now_ms: number) => {
      const [next, wait_ms] = take(bucket, rate, now_ms)
      bucket = next
      return wait_ms
    }
    for (let count = 0; count < 200; count += 1) assert.strictEqual(at(0), 0)
    assert.strictEqual(at(0), 10)
    assert.strictEqual(at(4), 6)
    assert.strictEqual(at(10), 0)
    assert.strictEqual(at(10), 10)
  })

  it("takes nothing away for a clock that was set back", () => {
    const [later] = take({ tokens: rate.burst, at_ms: 0 }, rate, 3_600_000)
    const [back, wait_ms] = take(later, rate, 0)
    assert.deepStrictEqual([back, wait_ms], [{ tokens: rate.burst - 2, at_ms: 0 }, 0])
  })

  it.prop("never grants more than burst plus rate times time, whatever the clock does", [Steps], ([steps]) => {
    let bucket: TokenBucket = { tokens: rate.burst, at_ms: 0 }
    let now_ms = 0
    let granted = 0
    let passed_ms = 0
    for (const step of steps) {
      now_ms += step
      passed_ms += Math.abs(step)
      for (let count = 0; count < 30; count += 1) {
        const [next, wait_ms] = take(bucket, rate, now_ms)
        bucket = next
        granted += wait_ms === 0 ? 1 : 0
      }
    }
    assert.isAtMost(granted, rate.burst + (passed_ms * rate.perSecond) / 1000 + 1)
  })
})
