/**
 * A turn whose provider fails for a moment: edge asks again for a minute, says so in one line, and only then that it could not answer. The failure
 * is in the log, so that a restart resumes there.
 */
import { Deferred, Effect } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { withoutStop } from "#src/shared/text/sentences.ts"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { ageSince } from "./ageSince.ts"

/** How long a turn asks again, from the failure on. */
export const TURN_PATIENCE_MS_MAX = 60_000
/** The first pause before it; each further one is twice as long. */
const PAUSE_MS_MIN = 5000

/** The one line about a provider that is asked again. */
const lineOf = (cause: string): string =>
  `The model does not answer at the moment (${withoutStop(cause)}). I keep asking for a minute.`

/** Asks again until an answer came, the minute is over or edge is to stop; whether that minute is over. */
export const makeTurnPatience = Effect.fnUntraced(function* <E, R>(
  stopping: Deferred.Deferred<void>,
  askAgain: Effect.Effect<void, E, R>
) {
  const arbiter = yield* Arbiter
  return Effect.fnUntraced(function* ({ created_at, payload, rev }: EventOf<"ModelOutput">) {
    const age = yield* ageSince(created_at)
    const isOpen = () => arbiter.state().edge.output_rev === rev
    const text = lineOf(payload.error?.message ?? "")
    for (let pause_ms = PAUSE_MS_MIN; isOpen() && !Deferred.isDoneUnsafe(stopping); pause_ms *= 2) {
      const left_ms = TURN_PATIENCE_MS_MAX - (yield* age)
      if (left_ms <= 0) return true
      yield* Effect.raceFirst(Effect.sleep(Math.min(pause_ms, left_ms)), Deferred.await(stopping))
      if (isOpen() && !Deferred.isDoneUnsafe(stopping)) yield* askAgain
      if (pause_ms === PAUSE_MS_MIN && isOpen()) yield* commitIfDue(arbiter, { type: "Notice", lane: EDGE, text })
    }
    return false
  })
})
