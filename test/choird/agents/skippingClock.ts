/** The real clock, of which a test skips as much as it likes: who sleeps until then wakes, and nothing else changes its pace. */
import { Clock, Duration, Effect } from "effect"

const NANOS = 1_000_000

export const makeSkippingClock = () => {
  const real = Effect.runSync(Clock.Clock)
  let skipped_ms = 0
  const sleepers = new Set<{ readonly due_ms: number; readonly wake: () => void }>()
  const millis = () => real.currentTimeMillisUnsafe() + skipped_ms
  const nanos = () => real.currentTimeNanosUnsafe() + BigInt(skipped_ms * NANOS)
  const monotonic = () => real.monotonicTimeNanosUnsafe() + BigInt(skipped_ms * NANOS)
  const elapsed_ms = () => Number(monotonic()) / NANOS
  const sleep = (duration: Duration.Duration) =>
    Effect.callback<void>((resume) => {
      const ms = Duration.toMillis(duration)
      if (!Number.isFinite(ms)) return Effect.void
      const wake = () => {
        clearTimeout(timer)
        sleepers.delete(sleeper)
        resume(Effect.void)
      }
      const sleeper = { due_ms: elapsed_ms() + ms, wake }
      const timer = setTimeout(wake, ms)
      sleepers.add(sleeper)
      return Effect.sync(() => {
        clearTimeout(timer)
        sleepers.delete(sleeper)
      })
    })
  const clock: Clock.Clock = Object.create(real, {
    currentTimeMillis: { value: Effect.sync(millis) },
    currentTimeMillisUnsafe: { value: millis },
    currentTimeNanos: { value: Effect.sync(nanos) },
    currentTimeNanosUnsafe: { value: nanos },
    monotonicTimeNanos: { value: Effect.sync(monotonic) },
    monotonicTimeNanosUnsafe: { value: monotonic },
    sleep: { value: sleep }
  })
  const skip = (ms: number) => {
    skipped_ms += ms
    for (const { due_ms, wake } of sleepers) if (due_ms <= elapsed_ms()) wake()
  }
  return {
    clock,
    /** Skips `ms` a hundred times a second for as long as an effect takes. */
    hurried: <A, E, R>(ms: number, effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => setInterval(() => skip(ms), 10)),
        () => effect,
        (timer) => Effect.sync(() => clearInterval(timer))
      )
  }
}
