/** The HTTP client of agents and tests: undici, with the one limit that its adapter takes away. */
import { NodeHttpClient } from "@effect/platform-node"
import type { Agent } from "@effect/platform-node/Undici"
import { Effect, Layer } from "effect"

export interface UndiciClientOptions extends Agent.Options {
  /** How long an answer that has begun may bring nothing, in ms; 0, the default, is for ever. */
  readonly idle_ms?: number
}

/** Fresh, because clients otherwise share one memoized layer whatever their options are. */
export const layerUndiciClient = ({ idle_ms = 0, ...options }: UndiciClientOptions) =>
  Layer.fresh(
    NodeHttpClient.layerUndiciNoDispatcher.pipe(
      Layer.provide(
        Layer.effect(
          NodeHttpClient.Dispatcher,
          Effect.map(NodeHttpClient.makeDispatcherOptions(options), (dispatcher) =>
            // The adapter sets the time of each request to none, so that it has to be set once more below it.
            dispatcher.compose(
              (dispatch) => (request, handler) => dispatch({ ...request, bodyTimeout: idle_ms }, handler)
            )
          )
        )
      )
    )
  )
