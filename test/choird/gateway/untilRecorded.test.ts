/** How long a stop waits for a delivery (R43). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { LAST_CALL_MS_MAX } from "#src/choird/gateway/untilRecorded.ts"
import { setUpOutgoing } from "../../support/outgoingWorld.ts"
import type { Fault } from "../../support/testing/TelegramFaults.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** A bot whose first message is struck, right after that. */
const struck = Effect.fnUntraced(function* (strike: Fault) {
  const world = yield* setUpOutgoing
  yield* world.bot.fail("sendMessage", strike)
  const bot = yield* start(world.run)
  yield* world.put("hello")
  while (!(yield* world.bot.calls.all).some(({ method }) => method === "sendMessage")) {
    yield* TestClock.adjust("80 millis")
    yield* turn
  }
  return { ...world, running: bot }
})

describe("a stop during a delivery", () => {
  it.effect("gives a call up that gets no answer in time", () =>
    Effect.gen(function* () {
      const { running } = yield* struck(fault.silenceAfterAccept)
      const stopped = yield* start(Fiber.interrupt(running))
      yield* TestClock.adjust(LAST_CALL_MS_MAX - 1)
      yield* turn
      assert.isUndefined(running.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(stopped)
    })
  )

  it.effect("does not wait for the next try", () =>
    Effect.gen(function* () {
      const { outcomes, running } = yield* struck(fault.serverError)
      yield* outcomes.first((outcome) => outcome.startsWith("failed"))
      yield* Fiber.interrupt(running)
    })
  )
})
