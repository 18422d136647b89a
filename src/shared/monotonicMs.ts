/** The clock for spans within one process: milliseconds from some moment on, which nobody who sets the host's time moves. */
import { Clock, Effect } from "effect"

const NANOS = 1_000_000n

export const monotonicMs: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / NANOS))

/** The same for code outside of effects. */
export const monotonicMsOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / NANOS)
