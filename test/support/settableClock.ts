/** A clock whose time of day a test sets, while what it measures goes on as before: a host whose time is corrected, or that was asleep. */
import { Clock, Effect } from "effect"

const NANOS = 1_000_000n

export const settableClock = Effect.map(Clock.Clock, (clock) => {
  let moved = 0
  const now = () => clock.currentTimeMillisUnsafe() + moved
  const nanos = () => clock.currentTimeNanosUnsafe() + BigInt(moved) * NANOS
  return {
    set: (by_ms: number) => {
      moved += by_ms
    },
    clock: Clock.Clock.of({
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration)
    })
  }
})
