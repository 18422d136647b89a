/** The HTTP client of choird and of agents: undici, with the one limit that its adapter takes away. It takes plain bodies and unpacks nothing. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { Agent, Dispatcher } from "@effect/platform-node/Undici"
import { Effect, Layer, type Scope } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import { makeOutsideConnections } from "./wayOut.ts"
import { COMPRESSED, isPlainBody } from "./plainFetch.ts"

interface UndiciClientOptions extends Agent.Options {
  /** Where every request goes, whatever host it names. */
  readonly origin?: string
  /** How long an answer that has begun may bring nothing, in ms; 0, the default, means no limit. */
  readonly idle_ms?: number
}

const IDENTITY = HttpClientRequest.setHeader("accept-encoding", "identity")

/** Asks for plain bodies, and fails where the answer is another one. */
const takingPlainBodies = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  client.pipe(
    HttpClient.mapRequest(IDENTITY),
    HttpClient.filterOrFail(
      ({ headers }) => isPlainBody(headers["content-encoding"]),
      (response) =>
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.DecodeError({ request: response.request, response, description: COMPRESSED })
        })
    )
  )

/** As {@link layerUndiciClient}, for servers outside of this host: through the proxies that it is to use. */
export const layerOutsideClient = ({ idle_ms = 0, ...options }: Omit<UndiciClientOptions, "origin">) =>
  layerOver(
    Effect.acquireRelease(
      Effect.promise(async () => {
        // The names of a CommonJS module are not there for a bundle in parts, its default is.
        const { default: undici } = await import("@effect/platform-node/Undici")
        return makeOutsideConnections(undici, options)
      }),
      ({ destroy }) => Effect.promise(destroy)
    ).pipe(Effect.map(({ dispatcher }) => dispatcher)),
    { bodyTimeout: idle_ms }
  )

/** Fresh, because clients otherwise share one memoized layer whatever their options are. */
export const layerUndiciClient = ({ idle_ms = 0, origin, ...options }: UndiciClientOptions) => {
  // The adapter sets the time of each request to an hour, so that it has to be set once more below it.
  const fixed = origin === undefined ? { bodyTimeout: idle_ms } : { bodyTimeout: idle_ms, origin }
  return layerOver(NodeHttpClient.makeDispatcherOptions({ ...options, allowH2: false }), fixed)
}

const layerOver = (
  agent: Effect.Effect<Dispatcher, never, Scope.Scope>,
  fixed: { readonly bodyTimeout: number; readonly origin?: string }
) => {
  const dispatcher = Effect.map(agent, (over) =>
    over.compose((dispatch) => (request, handler) => dispatch({ ...request, ...fixed }, handler))
  )
  const undici = Layer.provide(
    NodeHttpClient.layerUndiciNoDispatcher,
    Layer.effect(NodeHttpClient.Dispatcher, dispatcher)
  )
  return Layer.fresh(
    Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, takingPlainBodies)).pipe(
      Layer.provide(undici)
    )
  )
}
