import { Clock, Effect } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/**
 * The age in milliseconds of what was committed at `created_at`, from now on. The host's time is looked at once: setting it later ends
 * nothing and stretches nothing.
 */
export const ageSince = Effect.fnUntraced(function* (created_at: string) {
  const before = Math.max(0, (yield* Clock.currentTimeMillis) - Date.parse(created_at))
  const began = yield* monotonicMs
  return Effect.map(monotonicMs, (now) => before + now - began)
})
