/**
 * Orders to stop turns. Each names its turn and ends in one event: at once where that turn is over, by edge where it is open, and as soon
 * as it begins where its message still waits.
 */
import { Context, Deferred, Effect, Layer } from "effect"
import type { SignalOf } from "#schema/Signal.ts"
import { isUnheard } from "#src/shared/session/fold.ts"
import { findTurn } from "#src/shared/session/turns.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { isCorrecting } from "#src/agent/arbiter/finalWords.ts"

type Order = SignalOf<"StopTurn">

/** Keeps orders until the arbiter has answered them. choird lets no more than SIGNALS_PENDING_MAX wait. */
export class TurnStops extends Context.Service<
  TurnStops,
  {
    /** Takes an order. */
    order(order: Order): Effect.Effect<void>
    /** Waits until the open turn is to end; its runner stops what it does and then settles. */
    readonly due: Effect.Effect<void>
    /** Answers what is due; `report` is what an open report would have told. To be called once nothing of the turn runs any more. */
    settle(report: () => string | undefined): Effect.Effect<void>
  }
>()("choir/agent/TurnStops") {
  static readonly layer = Layer.effect(
    TurnStops,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const log = yield* EventLog
      const waiting = new Map<string, Order>()
      let came = Deferred.makeUnsafe<void>()

      const placeOf = ({ turn }: Order) =>
        findTurn(arbiter.state(), turn, isCorrecting(arbiter.state(), log.find)).place
      const answer = ({ signal_id, turn }: Order, report?: string) => {
        waiting.delete(signal_id)
        // An order that came again after its event is refused, since it has been answered.
        const stop = { type: "StopTurn", signal_id, turn } as const
        return commitEnd(arbiter, { ...stop, report }, isUnheard(signal_id), () => stop)
      }
      return TurnStops.of({
        order: (order) =>
          Effect.suspend(() => {
            const place = placeOf(order)
            if (place === "over") return answer(order)
            waiting.set(order.signal_id, order)
            if (place === "open") Deferred.doneUnsafe(came, Effect.void)
            return Effect.void
          }),
        due: Effect.suspend(() => {
          if ([...waiting.values()].some((order) => placeOf(order) === "open")) return Effect.void
          came = Deferred.makeUnsafe()
          return Deferred.await(came)
        }),
        settle: (report) =>
          Effect.uninterruptible(
            Effect.forEach(
              waiting.values(),
              (order) => Effect.suspend(() => (placeOf(order) === "later" ? Effect.void : answer(order, report()))),
              { discard: true }
            )
          )
      })
    })
  )
}
