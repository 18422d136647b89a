/** A proxy as companies have one: it opens tunnels by CONNECT and forwards plain requests, and every name leads to one server behind it. */
import { createServer, request } from "node:http"
import { connect, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { readFileSync } from "node:fs"
import { Effect } from "effect"

const listening = (server: { listen(port: number, host: string, done: () => void): unknown; address(): unknown }) =>
  Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(Number(Reflect.get(Object(server.address()), "port")))))
  })

/** Ends what is left of connections, which keep a server open. */
const tracked = () => {
  const open = new Set<Socket>()
  const track = (socket: Socket) => {
    open.add(socket)
    socket.on("error", () => undefined).once("close", () => open.delete(socket))
    return socket
  }
  return { track, end: () => [...open].forEach((socket) => socket.destroy()) }
}

/** A server with a certificate, which hands what it gets to a plain one on this host. */
export const makeTlsFront = Effect.fnUntraced(function* (
  certificate: { readonly cert: string; readonly key: string },
  behind: number
) {
  const { end, track } = tracked()
  const options = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) }
  const server = createTlsServer(options, (socket) => {
    track(socket)
    const to = track(connect(behind, "127.0.0.1"))
    socket.pipe(to).pipe(socket)
  })
  server.on("tlsClientError", () => undefined)
  const port = yield* listening(server)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      end()
      server.close()
    })
  )
  return { port }
})

export interface ConnectProxy {
  readonly url: string
  /** What was asked of it: `CONNECT host:port`, or a method and an address. */
  readonly asked: ReadonlyArray<string>
}

/** @param port of the server that every name leads to. @param password that a client has to give, as `user:password`. */
export const makeConnectProxy = Effect.fnUntraced(function* (port: number, password?: string) {
  const { end, track } = tracked()
  const asked: Array<string> = []
  const wanted = password === undefined ? undefined : `Basic ${Buffer.from(password).toString("base64")}`
  const isLetIn = (header: string | undefined) => wanted === undefined || header === wanted
  const server = createServer((incoming, answer) => {
    asked.push(`${incoming.method} ${incoming.url}`)
    if (!isLetIn(incoming.headers["proxy-authorization"])) return void answer.writeHead(407).end()
    const { pathname, search } = new URL(incoming.url ?? "")
    const { method, headers } = incoming
    const onwards = request({ port, host: "127.0.0.1", path: pathname + search, method, headers }, (found) => {
      answer.writeHead(found.statusCode ?? 502, found.headers)
      found.pipe(answer)
    })
    onwards.on("error", () => answer.destroy())
    incoming.pipe(onwards)
  })
  server.on("connect", ({ headers, url }, socket: Socket, head: Buffer) => {
    asked.push(`CONNECT ${url}`)
    track(socket)
    if (!isLetIn(headers["proxy-authorization"])) return void socket.end("HTTP/1.1 407 Password needed\r\n\r\n")
    const to = track(connect(port, "127.0.0.1"))
    to.once("connect", () => {
      socket.write("HTTP/1.1 200 Connected\r\n\r\n")
      to.write(head)
      socket.pipe(to).pipe(socket)
    })
  })
  const own = yield* listening(server)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      end()
      server.closeAllConnections()
      server.close()
    })
  )
  const login = password === undefined ? "" : `${password}@`
  return { url: `http://${login}127.0.0.1:${own}`, asked } satisfies ConnectProxy
})
