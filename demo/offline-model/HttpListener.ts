/** A small HTTP server on one address, whose connections end with the scope that it was started in. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Effect, type Scope } from "effect"
import {
  HttpIncomingMessage,
  HttpServer,
  type HttpServerError,
  type HttpServerRequest,
  type HttpServerResponse
} from "effect/http"

/** How long the offline model waits for a request to arrive whole. */
const OFFLINE_MODEL_REQUEST_TIMEOUT_MS = 30_000
/** Open connections to the offline model. */
const OFFLINE_MODEL_CONNECTIONS_MAX = 256

/**
 * Serves `app` and answers with its base URL, such as `http://127.0.0.1:4000`. Port 0 takes a free one.
 *
 * Bodies above `body_bytes_max` fail as `BodyTooLarge` where the app reads them.
 */
export const listen = Effect.fnUntraced(function* <E>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>,
  options: { readonly host: string; readonly port: number; readonly body_bytes_max: number }
): Effect.fn.Return<string, HttpServerError.ServeError, Scope.Scope> {
  const requestTimeout = OFFLINE_MODEL_REQUEST_TIMEOUT_MS
  const node = createServer({ requestTimeout, headersTimeout: requestTimeout })
  node.maxConnections = OFFLINE_MODEL_CONNECTIONS_MAX
  const server = yield* NodeHttpServer.make(() => node, { host: options.host, port: options.port })
  const limit = ByteSize.bytes(options.body_bytes_max)
  // A handler runs uninterruptibly by default, and would outlive its client and its scope where it waits.
  yield* Effect.interruptible(app).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, limit),
    HttpServer.serveEffect(),
    Effect.provideService(HttpServer.HttpServer, server)
  )
  // Runs before the server's own finalizers, which would wait for a client that keeps its connection open.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      node.close()
      node.closeAllConnections()
    })
  )
  return HttpServer.formatAddress(server.address)
})
