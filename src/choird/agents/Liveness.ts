/** Whether an agent hangs: liveness is the arrival of its heartbeats, by choird's own clock, which is not the host's (D8, E8). */
import { Effect } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Between two looks at an agent's heartbeats. */
export const LIVENESS_LOOK_MS = 500
/** A look that comes this much too late means that choird itself stood still, so that every clock starts anew (D8). */
const CHOIRD_PAUSE_MS = 2000

/** When the agent was last heard, when choird last looked, and how often in a row it found silence beyond the threshold. */
export interface Look {
  readonly heard_ms: number
  readonly looked_ms: number
  readonly silent: number
}

/** What arrived while choird itself was held up is read before the second look. */
const SILENT_LOOKS = 2

export const isSilent = ({ silent }: Look): boolean => silent >= SILENT_LOOKS

/** A look that comes too late says that choird slept, and what it slept through proves nothing about the agent. */
export const look = (before: Look, arrived_ms: number, now_ms: number, threshold_ms: number): Look => {
  const slept = now_ms - before.looked_ms > LIVENESS_LOOK_MS + CHOIRD_PAUSE_MS
  const heard_ms = slept ? now_ms : Math.max(before.heard_ms, arrived_ms)
  const silent = now_ms - heard_ms > threshold_ms ? before.silent + 1 : 0
  return { heard_ms, looked_ms: now_ms, silent }
}

/**
 * Returns once nothing was heard for longer than `threshold_ms` says at that moment, with the silence in ms. `heard_ms` tells the
 * newest arrival, by the monotonic clock, to whoever looks at `now_ms`.
 */
export const awaitSilence = Effect.fnUntraced(function* (
  heard_ms: (now_ms: number) => number,
  threshold_ms: Effect.Effect<number>
) {
  const start_ms = yield* monotonicMs
  let last: Look = { heard_ms: start_ms, looked_ms: start_ms, silent: 0 }
  while (!isSilent(last)) {
    yield* Effect.sleep(LIVENESS_LOOK_MS)
    const now_ms = yield* monotonicMs
    last = look(last, heard_ms(now_ms), now_ms, yield* threshold_ms)
  }
  return last.looked_ms - last.heard_ms
})
