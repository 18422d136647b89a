import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AgentId } from "#schema/Ids.ts"
import { messageComes } from "#src/choird/agents/Run.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { stored } from "../../support/awayDatabase.ts"

const ADA = AgentId.make("ada")

/** The wait of a run whose session is closed, over an inbox that counts its looks. */
const waiting = Effect.gen(function* () {
  const { wake, wakes } = yield* makeNotifier
  const world = { away: false, pending: 0, looks: 0 }
  const inbox = Layer.mock(Inbox, {
    wakes,
    pending: () =>
      Effect.suspend(() => {
        world.looks += 1
        return stored(world, world.pending)
      })
  })
  const stop = yield* Deferred.make<void>()
  const comes = yield* Effect.forkChild(Effect.provide(messageComes({ agent_id: ADA, stop }), inbox), {
    startImmediately: true
  })
  yield* TestClock.adjust("1 hour")
  return { comes, stop, wake: wake(ADA), world }
})

describe("an agent that waits for the message that starts its next session", () => {
  it.effect("looks into the inbox once, and again when a message is stored", () =>
    Effect.gen(function* () {
      const { comes, wake, world } = yield* waiting
      assert.strictEqual(world.looks, 1)
      world.pending = 1
      yield* wake
      assert.isTrue(yield* Fiber.join(comes))
      assert.strictEqual(world.looks, 2)
    })
  )

  it.effect("starts it once the database is back, where that went away with the message stored", () =>
    Effect.gen(function* () {
      const { comes, wake, world } = yield* waiting
      Object.assign(world, { away: true, pending: 1 })
      yield* wake
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(comes.pollUnsafe())
      world.away = false
      yield* TestClock.adjust("1 minute")
      assert.isTrue(yield* Fiber.join(comes))
    })
  )

  it.effect("waits no longer when the operator stops it", () =>
    Effect.gen(function* () {
      const { comes, stop } = yield* waiting
      yield* Deferred.succeed(stop, undefined)
      assert.isFalse(yield* Fiber.join(comes))
    })
  )
})
