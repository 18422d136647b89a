/**
 * The tokens and the money of a session, reserved while model calls run and settled when they end (D28). What is spent is a fold
 * of events, so nothing resets it; what is reserved lives here and dies with the process.
 */
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { exhaustedLimit } from "#src/agent/arbiter/decideCalls.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"

/** A limit of the session is reached; `limit` is a sentence for the user. */
export interface Exhausted {
  readonly _tag: "Exhausted"
  readonly limit: string
}

/** The most that a model call may cost. */
export interface Reservation {
  readonly tokens: number
  /** 0 where no price is known. */
  readonly cost_usd: number
}

const NOTHING: Reservation = { tokens: 0, cost_usd: 0 }

const sum = (a: Reservation, b: Reservation): Reservation => ({
  tokens: a.tokens + b.tokens,
  cost_usd: a.cost_usd + b.cost_usd
})

/** Guards the start of model calls. */
export class Budget extends Context.Service<
  Budget,
  {
    /**
     * Reserves the most that a call may cost until the scope closes. Waits while only other calls' reservations stand in the
     * way; fails when the session's limit is spent (R23, R24).
     */
    reserve(most: Reservation): Effect.Effect<void, Exhausted, Scope.Scope>
  }
>()("choir/agent/Budget") {
  static readonly layer = Layer.effect(
    Budget,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const settings = yield* AgentSettings
      const running = new Set<Reservation>()
      let waiting: ReadonlyArray<Deferred.Deferred<void>> = []

      // Summed again each time, since adding and subtracting fractions leaves a remainder.
      const mayStart = (): boolean => {
        const { max_cost_usd, total_session_tokens } = settings.current().config.budgets
        const { cost_usd, tokens } = [...running].reduce(sum, sum(NOTHING, arbiter.state().spent))
        return (
          running.size === 0 || (tokens < total_session_tokens && (max_cost_usd === null || cost_usd < max_cost_usd))
        )
      }
      const release = (most: Reservation) =>
        Effect.sync(() => {
          running.delete(most)
          const woken = waiting
          waiting = []
          for (const waiter of woken) Deferred.doneUnsafe(waiter, Effect.void)
        })
      const take = (most: Reservation): Effect.Effect<Reservation, Exhausted> =>
        Effect.suspend(() => {
          const limit = exhaustedLimit(arbiter.state(), settings.current().config.budgets)
          if (limit !== undefined) return Effect.fail({ _tag: "Exhausted", limit } as const)
          if (mayStart()) {
            // An object of its own, so that equal reservations are told apart.
            const taken = { ...most }
            running.add(taken)
            return Effect.succeed(taken)
          }
          const waiter = Deferred.makeUnsafe<void>()
          waiting = [...waiting, waiter]
          return Effect.andThen(Deferred.await(waiter), take(most))
        })
      return Budget.of({
        reserve: (most) => Effect.asVoid(Effect.acquireRelease(take(most), release, { interruptible: true }))
      })
    })
  )
}
