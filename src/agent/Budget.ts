/**
 * The tokens of a session, reserved while model calls run and settled when they end (D28). What is spent is a fold of events, so
 * nothing resets it; what is reserved lives here and dies with the process.
 */
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { exhaustedLimit } from "./decide.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import type { Exhausted } from "./ToolRunner.ts"

/** Guards the start of model calls. */
export class Budget extends Context.Service<
  Budget,
  {
    /**
     * Reserves the most that a call may cost until the scope closes. Waits while only other calls' reservations stand in the
     * way; fails when the session's limit is spent (R23, R24).
     */
    reserve(tokens: number): Effect.Effect<void, Exhausted, Scope.Scope>
  }
>()("choir/agent/Budget") {
  static readonly layer = Layer.effect(
    Budget,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const settings = yield* AgentSettings
      let reserved = 0
      let waiting: ReadonlyArray<Deferred.Deferred<void>> = []

      const release = (tokens: number) =>
        Effect.sync(() => {
          reserved -= tokens
          const woken = waiting
          waiting = []
          for (const waiter of woken) Deferred.doneUnsafe(waiter, Effect.void)
        })
      const take = (tokens: number): Effect.Effect<void, Exhausted> =>
        Effect.suspend(() => {
          const { budgets } = settings.current().config
          const limit = exhaustedLimit(arbiter.state(), budgets)
          if (limit !== undefined) return Effect.fail({ _tag: "Exhausted", limit } as const)
          const { tokens: spent } = arbiter.state().spent
          if (reserved === 0 || spent + reserved < budgets.total_session_tokens) {
            reserved += tokens
            return Effect.void
          }
          const waiter = Deferred.makeUnsafe<void>()
          waiting = [...waiting, waiter]
          return Effect.andThen(Deferred.await(waiter), take(tokens))
        })
      return Budget.of({
        reserve: (tokens) =>
          Effect.asVoid(Effect.acquireRelease(take(tokens), () => release(tokens), { interruptible: true }))
      })
    })
  )
}
