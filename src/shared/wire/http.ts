/** HTTP servers on Unix sockets and TCP: the limits of R47 on every connection, and every refusal in the one pinned shape. */
import { chmodSync, rmSync } from "node:fs"
import { createServer, type Server, type ServerOptions } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Cause, Effect, FiberSet, Scope } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { logDeath } from "#src/shared/background.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { claimSocketPath, SocketRefused } from "./sockets.ts"

/** An RPC's body in either direction (R47). */
export const BODY_BYTES_MAX = 1024 * 1024
/** The head of an HTTP request (R47). */
export const HTTP_HEADER_BYTES_MAX = 16 * 1024
/** How long the head of an HTTP request may take to arrive. */
export const HTTP_HEADERS_MS_MAX = 5000
/** How long a whole HTTP request may take to arrive. */
const HTTP_REQUEST_MS_MAX = 10_000
/** Characters of a failed request's address that the log repeats. */
const LOGGED_URL_CHARS_MAX = 200
/** How often a listener looks for requests that take too long. */
const HTTP_CHECK_INTERVAL_MS = 1000
/** How long an HTTP connection may lie idle between two requests. */
const HTTP_IDLE_MS_MAX = 30_000

/** Answers one request. */
export type HttpApp = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

interface Refusal {
  readonly status: number
  readonly type: string
  readonly message: string
  readonly hint?: string
  readonly retry_after_ms?: number
}

/** A refusal in the shape of `schema/ApiError.ts`, for what is refused outside the typed endpoints. */
export const refusalResponse = ({ status, ...error }: Refusal) =>
  HttpServerResponse.jsonUnsafe(
    { error },
    {
      status,
      headers:
        error.retry_after_ms === undefined
          ? {}
          : { "retry-after": String(Math.max(1, Math.ceil(error.retry_after_ms / 1000))) }
    }
  )

const NOT_FOUND: Refusal = { status: 404, type: "NOT_FOUND", message: "there is no such endpoint" }
const TOO_LARGE: Refusal = { status: 413, type: "TOO_LARGE", message: "the body of the request is too large" }
const UNREADABLE: Refusal = { status: 400, type: "BAD_REQUEST", message: "the request cannot be read" }
const MEDIA_TYPE: Refusal = { status: 415, type: "BAD_REQUEST", message: "a body is application/json" }
const INTERNAL: Refusal = { status: 500, type: "INTERNAL", message: "the request failed" }

/** The server's own objection to a request; everything else is a defect of ours. */
const refusalOf = (problem: unknown): Refusal => {
  if (!HttpServerError.isHttpServerError(problem)) return INTERNAL
  switch (problem.reason._tag) {
    case "RouteNotFound":
      return NOT_FOUND
    case "RequestParseError":
      return problem.reason.reason === "BodyTooLarge" ? TOO_LARGE : UNREADABLE
    default:
      return INTERNAL
  }
}

const pinnedFailure = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
  const refusals = cause.reasons.map((reason) =>
    reason._tag === "Fail" ? refusalOf(reason.error) : reason._tag === "Die" ? refusalOf(reason.defect) : INTERNAL
  )
  const refusal = refusals.find((each) => each !== INTERNAL)
  return refusal === undefined
    ? Effect.gen(function* () {
        const { method, url } = yield* HttpServerRequest.HttpServerRequest
        const request = `${method} ${url.slice(0, LOGGED_URL_CHARS_MAX)}`
        const ref = yield* Effect.annotateLogs(logDefect("a request failed", cause), { request })
        return refusalResponse({ ...INTERNAL, message: defectWords(INTERNAL.message, ref) })
      })
    : Effect.succeed(refusalResponse(refusal))
}

/** Gives every refusal its pinned body, and no failure a stack trace. */
export const answered = (app: HttpApp): HttpApp =>
  Effect.map(Effect.catchCause(app, pinnedFailure), (response) => {
    if (response.status === 415) return refusalResponse(MEDIA_TYPE)
    return response.status === 429 && response.headers["retry-after"] === undefined
      ? HttpServerResponse.setHeader(response, "retry-after", "1")
      : response
  }).pipe(withBodies(BODY_BYTES_MAX))

/** Lets an application take bodies of this size. */
export const withBodies = (bytes_max: number): ((app: HttpApp) => HttpApp) =>
  Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bytes_max))

const PARSER_REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout"
}

/** Answers bytes that are not a request, which no handler ever sees. A connection that broke, or never got through TLS, gets none. */
const onClientError = (error: NodeJS.ErrnoException, socket: Duplex) => {
  if (!socket.writable || !/^(HPE|ERR_HTTP)_/u.test(error.code ?? "")) return socket.destroy()
  const body = JSON.stringify({ error: { type: "BAD_REQUEST", message: UNREADABLE.message } })
  const head = `HTTP/1.1 ${PARSER_REFUSALS[error.code ?? ""] ?? "400 Bad Request"}`
  const headers = `connection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  return socket.end(`${head}\r\n${headers}\r\n\r\n${body}`, () => socket.destroy())
}

export interface ServeOptions {
  readonly connectionsMax: number
  /** How long a head may take to arrive in ms, HTTP_HEADERS_MS_MAX by default. */
  readonly headersMsMax?: number
  /** Sees each connection as it comes; one that it refuses is cut. */
  accept?(connection: Socket): boolean
  /** How long after such a refusal all further ones are cut unseen, which costs a fraction. None by default. */
  readonly restMs?: number
}

export interface ListenOptions extends ServeOptions {
  readonly path: string
  /** How many connections wait to be accepted, 511 by default: a peer that connects without end has all of them accepted and cut, again and again. */
  readonly backlog?: number
}

/** The times and sizes of R47, for whatever kind of server. */
export const serverLimits = ({ headersMsMax }: ServeOptions): ServerOptions => ({
  maxHeaderSize: HTTP_HEADER_BYTES_MAX,
  headersTimeout: headersMsMax ?? HTTP_HEADERS_MS_MAX,
  requestTimeout: HTTP_REQUEST_MS_MAX,
  connectionsCheckingInterval: HTTP_CHECK_INTERVAL_MS,
  keepAliveTimeout: HTTP_IDLE_MS_MAX
})

/**
 * Lets a server answer with an application until the scope closes: then no connection is taken any more, requests are interrupted,
 * and connections are cut. Node's own server is used, since it ignores the Upgrade header as long as nobody listens for it, and an
 * upgraded connection would escape the limits. It still has to be bound.
 */
export const serve = Effect.fnUntraced(function* (app: HttpApp, make: () => Server, options: ServeOptions) {
  const server = yield* Effect.acquireRelease(Effect.sync(make), (server) =>
    Effect.sync(() => server.closeAllConnections())
  )
  server.maxConnections = options.connectionsMax
  server.on("clientError", onClientError)
  const { restMs = 0 } = options
  const rests = yield* FiberSet.makeRuntime()
  const rest = Effect.andThen(
    Effect.sleep(restMs),
    Effect.sync(() => void (server.maxConnections = options.connectionsMax))
  )
  server.on("connection", (connection) => {
    if (options.accept?.(connection) !== false) return
    connection.destroy()
    if (restMs === 0 || server.maxConnections === 0) return
    server.maxConnections = 0
    rests(logDeath("the rest of a listener")(rest))
  })
  const requests = yield* Scope.fork(yield* Effect.scope)
  server.on("request", yield* NodeHttpServer.makeHandler(answered(app), { scope: requests }))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return server
})

const bind = (server: Server, { backlog, path }: ListenOptions) => {
  const failed = (cause: unknown) => new SocketRefused({ path, reason: "failed", detail: String(cause) })
  return Effect.callback<void, SocketRefused>((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(failed(cause)))
    server.once("error", fail)
    server.listen({ path, ...(backlog === undefined ? {} : { backlog }) }, () => {
      server.off("error", fail)
      resume(Effect.void)
    })
  }).pipe(Effect.andThen(Effect.try({ try: () => chmodSync(path, 0o600), catch: failed })))
}

/** Serves an application on a Unix socket, 0600 in a folder 0700, until the scope closes, which removes the socket. */
export const listen = Effect.fn("listen")(function* (app: HttpApp, options: ListenOptions) {
  const { path } = options
  yield* claimSocketPath(path)
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(path, { force: true })))
  const server = yield* serve(app, () => createServer(serverLimits(options)), options)
  yield* bind(server, options)
})
