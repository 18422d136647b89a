/** Services for an effect whose caller mostly already has them. */
import { Context, Effect } from "effect"

/**
 * Provides services as `Effect.provide` does. Only what the caller has otherwise is added to its context, since a context with all
 * of them is a copy of everything that the caller has, made for each call.
 */
export const withServices = <Services>(services: Context.Context<Services>) => {
  const provided = [...services.mapUnsafe].map(
    ([key, service]) => [Context.Service<Services, unknown>(key), service] as const
  )
  return <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Services>> =>
    Effect.updateContext(effect, (callers: Context.Context<Exclude<R, Services>>) => {
      let context: Context.Context<Exclude<R, Services> | Services> = callers as Context.Context<
        Exclude<R, Services> | Services
      >
      for (const [key, service] of provided)
        if (Context.getOrUndefined(context, key) !== service) context = Context.add(context, key, service)
      return context as Context.Context<R>
    })
}
