/** The page that Prometheus reads: `GET /metrics` on a port of the loopback interface, with a bearer token. It holds numbers, never texts. */
import { createHash, timingSafeEqual } from "node:crypto"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Effect, Layer, Redacted, Schema } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { parseListen } from "#schema/Transport.ts"
import { HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MS_MAX } from "#src/shared/wire/http.ts"

/** Connections to the page for Prometheus. */
const PROMETHEUS_CONNECTIONS_MAX = 8

class PageRefused extends Schema.TaggedError<PageRefused>()("PageRefused", {
  listen: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the metrics are not served on ${this.listen}: ${this.problem}. Choose another port in telemetry.prometheus.listen`
  }
}

/** A web page can reach the port under any name that it chooses; only the host's own names are answered. */
const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/u

const answer = (response: ServerResponse, status: number, text: string) =>
  response.writeHead(status, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text)

const digest = (text: string) => createHash("sha256").update(text).digest()

/** True if a header carries the token, compared in constant time. */
const brings = (header: string | undefined, expected: Buffer): boolean =>
  timingSafeEqual(digest(header ?? ""), expected)

const NO_TOKEN = "the metrics need a bearer token: choirctl status says where it is\n"

const makeServer = (page: () => string, token: Redacted.Redacted): Server => {
  const expected = digest(`Bearer ${Redacted.value(token)}`)
  const server = createServer(
    { maxHeaderSize: HTTP_HEADER_BYTES_MAX, headersTimeout: HTTP_HEADERS_MS_MAX, requestTimeout: HTTP_HEADERS_MS_MAX },
    ({ headers, method, url }, response) => {
      if (!LOCAL.test(headers.host ?? "") || headers.origin !== undefined) return answer(response, 403, "forbidden\n")
      if (!brings(headers.authorization, expected)) {
        response.setHeader("www-authenticate", "Bearer")
        return answer(response, 401, NO_TOKEN)
      }
      if (url !== "/metrics") return answer(response, 404, "the metrics are at /metrics\n")
      return method === "GET" ? answer(response, 200, page()) : answer(response, 405, "GET only\n")
    }
  )
  const connections = new Set<Socket>()
  // The oldest connection is closed: otherwise slow ones could keep the scraper out.
  server.on("connection", (connection) => {
    connections.add(connection)
    connection.once("close", () => connections.delete(connection))
    const [oldest] = connections
    if (connections.size > PROMETHEUS_CONNECTIONS_MAX && oldest !== undefined) {
      connections.delete(oldest)
      oldest.destroy()
    }
  })
  return server
}

const bind = (server: Server, listen: string) =>
  Effect.callback<void, PageRefused>((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new PageRefused({ listen, problem: cause.message })))
    const place = parseListen(listen)
    if (place === undefined) return fail(new Error("it is not a host and a port"))
    server.once("error", fail)
    server.listen(place, () => {
      server.off("error", fail)
      resume(Effect.void)
    })
  })

/** Serves the page to requests with the token, until the scope closes. A port in use is only a warning. */
export const layerPrometheus = (listen: string, token: Redacted.Redacted) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const context = yield* Effect.context()
      const server = yield* Effect.acquireRelease(
        Effect.sync(() => makeServer(() => PrometheusMetrics.formatUnsafe(context), token)),
        (server) =>
          Effect.sync(() => {
            server.close()
            server.closeAllConnections()
          })
      )
      yield* bind(server, listen)
      yield* Effect.logInfo(`metrics for Prometheus: http://${listen}/metrics`)
    }).pipe(Effect.catchTag("PageRefused", (refused) => Effect.logWarning(refused.message)))
  )
