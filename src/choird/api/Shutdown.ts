/** The operator's request that choird ends; main waits for it. */
import { Context, Deferred, Effect, Layer } from "effect"

export class Shutdown extends Context.Service<
  Shutdown,
  {
    readonly request: Effect.Effect<void>
    /** Returns once it was requested. */
    readonly requested: Effect.Effect<void>
  }
>()("choir/choird/Shutdown") {
  static readonly layer = Layer.effect(
    Shutdown,
    Effect.map(Deferred.make<void>(), (asked) =>
      Shutdown.of({ request: Effect.asVoid(Deferred.succeed(asked, undefined)), requested: Deferred.await(asked) })
    )
  )
}
