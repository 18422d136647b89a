/**
 * The silence of a model's answer. Until its first word or call, and again while it thinks, a model may send nothing for minutes: many keep their
 * thoughts to themselves, and servers that answer in one piece send it when it is whole. There the time of the whole call is the limit. Between
 * words, silence means a connection that nobody closed.
 */
import { Effect } from "effect"
import { problem } from "#src/shared/model/Answer.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** How long a model that is writing may send nothing. Some servers hold a long call back until it is whole. */
export const MODEL_IDLE_MS_MAX = 180_000

const silent = problem("timeout", `nothing arrived for ${MODEL_IDLE_MS_MAX / 1000} s`)

/** A sign of life, and whether the model is writing from then on; without a word on that it does as before. */
export type Sign = (isWriting?: boolean) => Effect.Effect<void>

/** Fails once a reader that is writing, by its own signs, has had none for too long. */
export const endedBySilence = Effect.fnUntraced(function* <A, E, R>(read: (sign: Sign) => Effect.Effect<A, E, R>) {
  let since = yield* monotonicMs
  let isAtIt = false
  const sign: Sign = (isWriting = isAtIt) =>
    Effect.map(monotonicMs, (now) => {
      since = now
      isAtIt = isWriting
    })
  const watch = Effect.gen(function* () {
    for (;;) {
      const left = isAtIt ? since + MODEL_IDLE_MS_MAX - (yield* monotonicMs) : MODEL_IDLE_MS_MAX
      if (left <= 0) return yield* Effect.fail(silent)
      yield* Effect.sleep(left)
    }
  })
  return yield* Effect.raceFirst(read(sign), watch)
})
