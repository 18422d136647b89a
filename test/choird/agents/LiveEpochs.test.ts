import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { awaitSilence, isSilent, LIVENESS_LOOK_MS, look, type Look } from "#src/choird/agents/LiveEpochs.ts"
import { makeRandom } from "../../support/history.ts"

const DAY_MS = 86_400_000
/** The defaults of config.json. */
const [INTERVAL_MS, THRESHOLD_MS] = [5000, 10_000]

const watch = Effect.fnUntraced(function* (threshold_ms: number) {
  const heard = { ms: 0 }
  const fiber = yield* Effect.forkChild(
    awaitSilence(() => heard.ms, Effect.succeed(threshold_ms)),
    { startImmediately: true }
  )
  const hear = Effect.map(monotonicMs, (now_ms) => void (heard.ms = now_ms))
  return { fiber, hear }
})

describe("Liveness", () => {
  it.effect("finds silence beyond the threshold within a second, and none before (R7)", () =>
    Effect.gen(function* () {
      const { fiber, hear } = yield* watch(10_000)
      for (let beat = 0; beat < 20; beat += 1) {
        yield* TestClock.adjust("9900 millis")
        yield* hear
      }
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.isAtMost(yield* Fiber.join(fiber), 11_000)
    })
  )

  it.effect("is not misled by a host's clock that is set back (R7)", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const backwards = () => -clock.currentTimeMillisUnsafe()
      const setBack = Effect.provideService(Clock.Clock, {
        currentTimeMillisUnsafe: backwards,
        currentTimeMillis: Effect.sync(backwards),
        currentTimeNanosUnsafe: () => -clock.currentTimeNanosUnsafe(),
        currentTimeNanos: Effect.map(clock.currentTimeNanos, (nanos) => -nanos),
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) => clock.sleep(duration)
      })
      const { fiber, hear } = yield* setBack(watch(10_000))
      yield* TestClock.adjust("5 seconds")
      yield* setBack(hear)
      yield* TestClock.adjust("11 seconds")
      assert.isAtMost(yield* Fiber.join(fiber), 11_000)
    })
  )

  it("starts the clock again after a pause of choird itself, since it heard nobody meanwhile (D8)", () => {
    const before = { last_heartbeat_ms: 1000, looked_ms: 9000, silent: 0 }
    const at = (now_ms: number) => look(before, 0, now_ms, 20_000)
    assert.deepStrictEqual(at(9500), { last_heartbeat_ms: 1000, looked_ms: 9500, silent: 0 })
    assert.deepStrictEqual(at(11_500), { last_heartbeat_ms: 1000, looked_ms: 11_500, silent: 0 })
    assert.deepStrictEqual(at(11_501), { last_heartbeat_ms: 11_501, looked_ms: 11_501, silent: 0 })
    assert.deepStrictEqual(at(3_600_000), { last_heartbeat_ms: 3_600_000, looked_ms: 3_600_000, silent: 0 })
  })

  it("raises no false alarm in 24 hours in which agent and choird stall for up to 3 seconds at any time (R7)", () => {
    const stall = (random: () => number) => (random() < 0.2 ? Math.floor(random() * 3000) : 0)
    for (let seed = 1; seed <= 10; seed++) {
      const random = makeRandom(seed)
      let last: Look = { last_heartbeat_ms: 0, looked_ms: 0, silent: 0 }
      let [beat_ms, arrived_ms, now_ms] = [INTERVAL_MS, 0, 0]
      while (now_ms < DAY_MS) {
        now_ms += LIVENESS_LOOK_MS + stall(random)
        // A beat is read after the look that a stall of choird delayed: the worst order.
        last = look(last, arrived_ms, now_ms, THRESHOLD_MS)
        if (isSilent(last)) assert.fail(`seed ${seed}, ${now_ms} ms`)
        for (; beat_ms <= now_ms; beat_ms += INTERVAL_MS + stall(random)) arrived_ms = now_ms
      }
    }
  })
})
