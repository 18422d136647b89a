/** Whether an agent hangs: liveness is the arrival of its heartbeats, by choird's own clock (D8, E8). */
import { Clock, Effect } from "effect"
import { CHOIRD_PAUSE_MS, LIVENESS_LOOK_MS } from "#src/shared/limits.ts"

/** When the agent was last heard, and when choird last looked. */
export interface Look {
  readonly heard_ms: number
  readonly looked_ms: number
}

/** A look that comes too late says that choird slept, and what it slept through proves nothing about the agent. */
export const look = ({ heard_ms, looked_ms }: Look, now_ms: number): Look =>
  now_ms - looked_ms > LIVENESS_LOOK_MS + CHOIRD_PAUSE_MS
    ? { heard_ms: now_ms, looked_ms: now_ms }
    : { heard_ms, looked_ms: now_ms }

/**
 * Returns once nothing was heard for longer than `threshold_ms` says at that moment, with the silence in ms. `heard_ms` tells the
 * newest arrival.
 */
export const awaitSilence = Effect.fnUntraced(function* (heard_ms: () => number, threshold_ms: Effect.Effect<number>) {
  const start_ms = yield* Clock.currentTimeMillis
  let last: Look = { heard_ms: Math.max(start_ms, heard_ms()), looked_ms: start_ms }
  while (last.looked_ms - last.heard_ms <= (yield* threshold_ms)) {
    yield* Effect.sleep(LIVENESS_LOOK_MS)
    last = look({ ...last, heard_ms: Math.max(last.heard_ms, heard_ms()) }, yield* Clock.currentTimeMillis)
  }
  return last.looked_ms - last.heard_ms
})
