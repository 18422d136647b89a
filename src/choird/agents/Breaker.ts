/** The breaker of an agent that crashes repeatedly (R9), from the times of its crashes since it was started by hand. */

/** Crashes within BREAKER_WINDOW_MS that stop an agent (R9). */
export const BREAKER_CRASHES_MAX = 3
export const BREAKER_WINDOW_MS = 300_000
/** Crashes within an hour that stop an agent, so that it never starts more than twelve times (R9). */
export const BREAKER_HOURLY_CRASHES_MAX = 12
const BREAKER_HOUR_MS = 3_600_000

export interface Breaker {
  /** The crashes of the last hour, the oldest first. */
  readonly crashes_ms: ReadonlyArray<number>
  /** The reason why the agent is not started again; absent while it is. */
  readonly tripped?: string
}

export const BREAKER: Breaker = { crashes_ms: [] }

/** One more crash. */
export const crash = ({ crashes_ms }: Breaker, now_ms: number): Breaker => {
  const hour = [...crashes_ms, now_ms].filter((at_ms) => now_ms - at_ms < BREAKER_HOUR_MS)
  const recent = hour.filter((at_ms) => now_ms - at_ms < BREAKER_WINDOW_MS)
  if (recent.length >= BREAKER_CRASHES_MAX)
    return { crashes_ms: hour, tripped: `it crashed ${recent.length} times in ${BREAKER_WINDOW_MS / 60_000} minutes` }
  return hour.length >= BREAKER_HOURLY_CRASHES_MAX
    ? { crashes_ms: hour, tripped: `it crashed ${hour.length} times in an hour` }
    : { crashes_ms: hour }
}
