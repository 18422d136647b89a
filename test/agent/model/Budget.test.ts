import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

const LIMIT = 100

const withBudget = <A, E>(use: Effect.Effect<A, E, Budget>) =>
  Effect.provide(
    use,
    Budget.layer.pipe(
      Layer.provide(Arbiter.layer),
      Layer.provide(
        Layer.mergeAll(
          EventLog.layer(SESSION),
          AgentSettings.layer(settingsOf(1, agentConfig({ total_session_tokens: LIMIT })))
        )
      )
    )
  )

/** A call that reserves so many tokens until it is let go. */
const reserving = Effect.fnUntraced(function* (tokens: number) {
  const budget = yield* Budget
  const [began, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const call = budget
    .reserve({ tokens, cost_usd: 0 })
    .pipe(Effect.andThen(Deferred.succeed(began, undefined)), Effect.andThen(Deferred.await(end)), Effect.scoped)
  const fiber = yield* Effect.forkChild(call, { startImmediately: true })
  return { hasBegun: Deferred.isDone(began), end: Effect.andThen(Deferred.succeed(end, undefined), Fiber.join(fiber)) }
})

describe("Budget", () => {
  it.effect(
    "starts a call while the others reserve less than the limit, and lets it wait once they reserve all of it (R23)",
    () =>
      withBudget(
        Effect.gen(function* () {
          const almost = yield* reserving(LIMIT - 1)
          const last = yield* reserving(1)
          assert.isTrue(yield* last.hasBegun)
          const waiting = yield* reserving(1)
          assert.isFalse(yield* waiting.hasBegun)
          yield* last.end
          yield* Effect.yieldNow
          assert.isTrue(yield* waiting.hasBegun)
          yield* waiting.end
          yield* almost.end
        })
      )
  )
})
