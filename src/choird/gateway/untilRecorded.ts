/**
 * A delivery that a stop meets: the call under way and its record are one step, which the stop waits for. The messenger may have taken the message, and
 * what is not recorded is sent again by the next choird.
 */
import { Deferred, Effect, Fiber } from "effect"
import type { ChannelChat } from "./Channel.ts"

/** How long a stop waits for a call and its record. A messenger answers within a second as a rule; choird as a whole has CHOIRD_STOP_MS_MAX. */
export const LAST_CALL_MS_MAX = 5000

/** A wait before a call, at which a delivery ends once its chat is left. */
export const whileHere = <A, E, R>({ left }: Pick<ChannelChat, "left">, wait: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(Effect.andThen(Deferred.await(left), Effect.interrupt), wait)

/** Delivers; an interrupt leaves the chat, and cuts off only what has not come to its next wait or its end in time. */
export const untilRecorded = <A, E, R>({ left }: Pick<ChannelChat, "left">, delivery: Effect.Effect<A, E, R>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(restore(delivery), { startImmediately: true })
      const leave = Effect.gen(function* () {
        yield* Deferred.succeed(left, undefined)
        yield* Effect.timeoutOption(Fiber.await(fiber), LAST_CALL_MS_MAX)
        yield* Fiber.interrupt(fiber)
      })
      return yield* Effect.onInterrupt(restore(Fiber.join(fiber)), () => leave)
    })
  )
