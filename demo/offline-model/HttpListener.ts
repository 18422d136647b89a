/** A small HTTP server, on an address of its own or for connections that another process accepted. Its connections end with its scope. */
import { createServer } from "node:http"
import type { Socket } from "node:net"
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

type App<E> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>

const makeNode = () =>
  createServer({
    requestTimeout: OFFLINE_MODEL_REQUEST_TIMEOUT_MS,
    headersTimeout: OFFLINE_MODEL_REQUEST_TIMEOUT_MS
  })

/** A handler runs uninterruptibly by default, and would outlive its client and its scope where it waits. */
const limited = <E>(app: App<E>, body_bytes_max: number) =>
  Effect.interruptible(app).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(body_bytes_max)))

/**
 * Serves `app` and answers with its base URL, such as `http://127.0.0.1:4000`. Port 0 takes a free one.
 *
 * Bodies above `body_bytes_max` fail as `BodyTooLarge` where the app reads them.
 */
export const listen = Effect.fnUntraced(function* <E>(
  app: App<E>,
  options: { readonly host: string; readonly port: number; readonly body_bytes_max: number }
): Effect.fn.Return<string, HttpServerError.ServeError, Scope.Scope> {
  const node = makeNode()
  node.maxConnections = OFFLINE_MODEL_CONNECTIONS_MAX
  const server = yield* NodeHttpServer.make(() => node, { host: options.host, port: options.port })
  yield* limited(app, options.body_bytes_max).pipe(
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

/** Serves `app` without listening: answers the function that takes a connection, which arrives paused. */
export const connections = Effect.fnUntraced(function* <E>(
  app: App<E>,
  { body_bytes_max }: { readonly body_bytes_max: number }
): Effect.fn.Return<(socket: Socket) => void, never, Scope.Scope> {
  const node = makeNode()
  const handler = yield* NodeHttpServer.makeHandler(limited(app, body_bytes_max), { scope: yield* Effect.scope })
  node.on("request", handler)
  const open = new Set<Socket>()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const socket of open) socket.destroy()
    })
  )
  return (socket) => {
    if (open.size >= OFFLINE_MODEL_CONNECTIONS_MAX) return void socket.destroy()
    open.add(socket)
    socket.once("close", () => open.delete(socket))
    node.emit("connection", socket)
    socket.resume()
  }
})
