/**
 * The HTTP proxy of the browser (docs/web.md, Where requests may go): whatever a page asks for comes through here, where the name is resolved once
 * and only public addresses are connected to. It listens on loopback, and answers only those who have the token of a lease.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
  type ServerResponse
} from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Effect, FiberSet, Schema, type Scope } from "effect"
import { isSpent, type Lease, makeProxyLeases, meter, note, type ProxyLease, type ProxyLeases } from "./ProxyLeases.ts"
import { WebDialer } from "./WebDialer.ts"
import { logDeath } from "#src/shared/background.ts"

/** Connections through the proxy, of all leases and of those without one. */
const PROXY_CONNECTIONS_MAX = 512
/**
 * A connection of the browser without a byte, or without the head of a request. Chromium itself gives up a connection that it has used after
 * 300 s, and one that it opened ahead of its requests earlier: a page never meets one that is being cut, also where choird was held up.
 */
const IDLE_MS_MAX = 330_000
/** A site that says nothing. */
const SITE_SILENT_MS_MAX = 60_000
/** The head of a request: pages set large cookies. */
const HEAD_BYTES_MAX = 64 * 1024
/** The proxy could not listen. */
export class ProxyUnavailable extends Schema.TaggedError<ProxyUnavailable>()("ProxyUnavailable", {
  problem: Schema.String
}) {
  override get message() {
    return `the proxy of the browser cannot listen on loopback: ${this.problem}`
  }
}

export interface WebProxy {
  readonly url: string
  /** Ends with the scope, and cuts every connection of it. */
  readonly lease: Effect.Effect<ProxyLease, never, Scope.Scope>
}

/** Headers that are between two neighbours (RFC 9110, 7.6.1), and those that this proxy writes itself. */
const HOP_BY_HOP = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** Two sockets that end together, also when neither says anything for long. */
const joined = (client: Socket, upstream: Socket) => {
  for (const [one, other] of [
    [client, upstream],
    [upstream, client]
  ] as const) {
    one.setTimeout(IDLE_MS_MAX, () => one.destroy())
    one.on("error", () => one.destroy()).once("close", () => other.destroy())
  }
}

const kept = (headers: IncomingHttpHeaders): Record<string, string | ReadonlyArray<string>> => {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()))
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || HOP_BY_HOP.has(name) || named.has(name) ? [] : [[name, value] as const]
    )
  )
}

/** Passes the head of an answer on, if it is one: a site may send a status or a header that Node reads and does not write. */
const hasHead = (response: ServerResponse, { headers, statusCode = 0 }: IncomingMessage): boolean => {
  if (statusCode < 200 || statusCode > 599) return false
  try {
    response.writeHead(statusCode, kept(headers) as Record<string, string>)
    return true
  } catch {
    return false
  }
}

const line = (status: string, headers: ReadonlyArray<string> = []) =>
  `${[`HTTP/1.1 ${status}`, ...headers, "Content-Length: 0", "Connection: close"].join("\r\n")}\r\n\r\n`

const NO_TOKEN = line("407 Proxy Authentication Required", ['Proxy-Authenticate: Basic realm="choir"'])

/** The place that a CONNECT asks for. */
const placeOf = (authority: string | undefined) => {
  const [, host = "", port = ""] = /^(.{1,260}):(\d{1,5})$/u.exec(authority ?? "") ?? []
  return { host: host.replace(/^\[|\]$/gu, ""), port: Number(port) }
}

/** The address that a plain request asks for. */
const httpTarget = (address: string | undefined): URL | undefined => {
  const url = URL.parse(address ?? "")
  return url?.protocol === "http:" && url.username === "" && url.password === "" ? url : undefined
}

/** Fails once a socket is closed, so that nothing is done for one who has gone. */
const closing = (socket: Socket) =>
  Effect.callback<never>((resume) => {
    const gone = () => resume(Effect.interrupt)
    if (socket.destroyed) return gone()
    socket.once("close", gone)
    return Effect.sync(() => socket.off("close", gone))
  })

const make = (dial: WebDialer["Service"]["dial"], leases: ProxyLeases) => {
  /** A connection for a lease, or `undefined` when it gets none. */
  const reach = (lease: Lease, client: Socket, host: string, port: number) =>
    isSpent(lease)
      ? Effect.undefined
      : Effect.catch(Effect.raceFirst(dial(host, port), closing(client)), ({ message }) =>
          Effect.as(
            Effect.sync(() => note(lease, message)),
            undefined
          )
        )

  const tunnel = Effect.fnUntraced(function* (request: IncomingMessage, client: Socket, head: Buffer) {
    const lease = leases.find(request.headers["proxy-authorization"])
    if (lease === undefined) return void client.end(NO_TOKEN)
    if (!leases.hold(lease, client)) return void client.end(line("503 Too Many Connections"))
    const { host, port } = placeOf(request.url)
    const upstream = yield* reach(lease, client, host, port)
    if (upstream === undefined) return void client.end(line("502 Refused"))
    const cut = () => void client.destroy()
    joined(client, upstream)
    meter(lease, "received", upstream, cut)
    meter(lease, "sent", client, cut)
    client.write("HTTP/1.1 200 Connected\r\n\r\n")
    upstream.write(head)
    client.pipe(upstream).pipe(client)
  })

  const forward = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const refuse = (status: number, headers: Record<string, string> = {}) =>
      void response.writeHead(status, { ...headers, "content-length": "0", connection: "close" }).end()
    const lease = leases.find(request.headers["proxy-authorization"])
    if (lease === undefined) return refuse(407, { "proxy-authenticate": 'Basic realm="choir"' })
    const client = request.socket
    if (!leases.hold(lease, client)) return refuse(503)
    const url = httpTarget(request.url)
    if (url === undefined) return refuse(400)
    const socket = yield* reach(lease, client, url.hostname, Number(url.port || 80))
    if (socket === undefined) return refuse(502)
    socket.setTimeout(SITE_SILENT_MS_MAX, () => socket.destroy())
    response.once("close", () => socket.destroy())
    meter(lease, "received", socket, () => response.destroy())
    meter(lease, "sent", request, () => response.destroy())
    const asked: RequestOptions = {
      createConnection: () => socket,
      method: request.method ?? "GET",
      path: `${url.pathname}${url.search}`,
      headers: { ...kept(request.headers), host: url.host, connection: "close" },
      setHost: false
    }
    const sending = httpRequest(asked, (answer) => {
      answer.on("error", () => response.destroy())
      if (!hasHead(response, answer)) {
        answer.destroy()
        return refuse(502)
      }
      answer.pipe(response)
    })
    sending.on("error", () => (response.headersSent ? response.destroy() : refuse(502)))
    response.on("error", () => socket.destroy())
    request.on("error", () => socket.destroy())
    request.pipe(sending)
  })

  return { tunnel, forward }
}

/** Listens until the scope closes, on a port that the kernel chooses. */
export const openWebProxy = Effect.gen(function* () {
  const { dial } = yield* WebDialer
  const leases = makeProxyLeases()
  const { forward, tunnel } = make(dial, leases)
  const run = yield* FiberSet.makeRuntime()
  const open = new Set<Socket>()
  const server = createServer({
    maxHeaderSize: HEAD_BYTES_MAX,
    headersTimeout: IDLE_MS_MAX,
    requestTimeout: IDLE_MS_MAX,
    keepAliveTimeout: IDLE_MS_MAX
  })
  server.maxConnections = PROXY_CONNECTIONS_MAX
  server.on("connection", (socket) => {
    open.add(socket)
    socket.on("error", () => socket.destroy()).once("close", () => open.delete(socket))
  })
  server.on("clientError", (_error, socket) => socket.destroy())
  server.on(
    "request",
    (request, response) => void run(logDeath("a request of the web proxy")(forward(request, response)))
  )
  server.on(
    "connect",
    (request, socket, head) => void run(logDeath("a tunnel of the web proxy")(tunnel(request, socket as Socket, head)))
  )
  yield* Effect.acquireRelease(
    Effect.callback<void, ProxyUnavailable>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(new ProxyUnavailable({ problem: cause.message }))))
      server.listen({ host: "127.0.0.1", port: 0 }, () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.close()
        for (const socket of open) socket.destroy()
      })
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, lease: leases.open } satisfies WebProxy
})
