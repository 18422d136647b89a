/** The HTTP client of agents and tests: undici, with the one limit that its adapter takes away. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { Agent } from "@effect/platform-node/Undici"
import { Effect, Layer } from "effect"

interface UndiciClientOptions extends Agent.Options {
  /** Where every request goes, whatever host it names. */
  readonly origin?: string
  /** How long an answer that has begun may bring nothing, in ms; 0, the default, means no limit. */
  readonly idle_ms?: number
}

/** Fresh, because clients otherwise share one memoized layer whatever their options are. */
export const layerUndiciClient = ({ idle_ms = 0, origin, ...options }: UndiciClientOptions) => {
  // The adapter sets the time of each request to none, so that it has to be set once more below it.
  const fixed = origin === undefined ? { bodyTimeout: idle_ms } : { bodyTimeout: idle_ms, origin }
  const dispatcher = Effect.map(NodeHttpClient.makeDispatcherOptions({ ...options, allowH2: false }), (agent) =>
    agent.compose((dispatch) => (request, handler) => dispatch({ ...request, ...fixed }, handler))
  )
  return Layer.fresh(
    Layer.provide(NodeHttpClient.layerUndiciNoDispatcher, Layer.effect(NodeHttpClient.Dispatcher, dispatcher))
  )
}
