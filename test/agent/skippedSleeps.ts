/** The real clock, whose sleeps of certain lengths end as soon as they begin: what waits for so long need not be waited for. */
import { Clock, Duration, Effect } from "effect"

export const makeSkippedSleeps = (...lengths_ms: ReadonlyArray<number>) => {
  const real = Effect.runSync(Clock.Clock)
  const skipped: Array<number> = []
  const sleep = (duration: Duration.Duration) =>
    Effect.suspend(() => {
      const ms = Duration.toMillis(duration)
      if (!lengths_ms.includes(ms)) return real.sleep(duration)
      skipped.push(ms)
      return Effect.void
    })
  const clock: Clock.Clock = Object.create(real, { sleep: { value: sleep } })
  return { clock, skipped }
}
