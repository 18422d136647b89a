/**
 * Lets held messages go when nothing more comes of them. The rest may still come of a gateway that is storing messages, or that has stored none
 * in this life of choird; its messages are held up to JOIN_MS_MAX.
 */
import { Clock, Effect, Queue } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"

/** The shortest and the longest wait between two looks at the messages that are held. */
const HELD_LOOK_MS_MIN = 200
const HELD_LOOK_MS_MAX = 60_000

/** Starts letting go, until the scope ends. Returns what the storing of a gateway's messages is wrapped in. */
export const makeHeldMessages = Effect.gen(function* () {
  const inbox = yield* Inbox
  const looks = yield* Queue.sliding<void>(1)
  const ready = new Set<ResourceName>()

  const look = Effect.gen(function* () {
    const due_ms = yield* retryDatabase(inbox.release([...ready]))
    if (due_ms === undefined) return yield* Queue.take(looks)
    const wait_ms = due_ms - (yield* Clock.currentTimeMillis)
    const wait = Effect.sleep(Math.min(Math.max(wait_ms, HELD_LOOK_MS_MIN), HELD_LOOK_MS_MAX))
    return yield* Effect.raceFirst(wait, Queue.take(looks))
  })
  yield* look.pipe(
    Effect.catchDefect((defect) =>
      Effect.andThen(Effect.logError("releasing held messages failed", defect), Effect.sleep(HELD_LOOK_MS_MAX))
    ),
    Effect.forever,
    Effect.forkScoped
  )

  return <A, E, R>(gateway: ResourceName, storing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      ready.delete(gateway)
      const stored = yield* storing
      ready.add(gateway)
      yield* Queue.offer(looks, undefined)
      return stored
    })
})
