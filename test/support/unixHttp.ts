/** A plain HTTP client and raw bytes on a Unix socket or on TCP of this host, to see a server as a hostile peer does. */
import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from "node:http"
import { request as httpsRequest } from "node:https"
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Effect } from "effect"

/** A socket's path, or a port of 127.0.0.1: with TLS when there is a certificate to trust. */
export type Place = string | { readonly port: number; readonly ca?: string }

const HOST = "127.0.0.1"

const requestTo = (place: Place, options: RequestOptions) => {
  if (typeof place === "string") return httpRequest({ ...options, socketPath: place })
  const { ca, port } = place
  return ca === undefined
    ? httpRequest({ ...options, host: HOST, port })
    : httpsRequest({ ...options, host: HOST, port, ca, servername: "localhost" })
}

const openTo = (place: Place, opened: () => void): Socket => {
  if (typeof place === "string") return connect({ path: place }, opened)
  const { ca, port } = place
  return ca === undefined
    ? connect({ host: HOST, port }, opened)
    : connectTls({ host: HOST, port, ca, servername: "localhost" }, opened)
}

export interface Ask {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** One request on a connection of its own; a connection that is cut fails with its code. */
export const ask = (place: Place, { body, headers, method, path }: Ask) =>
  Effect.callback<Answer, NodeJS.ErrnoException>((resume) => {
    const sent = requestTo(place, { method: method ?? "POST", path, headers: { ...headers }, agent: false })
    sent.once("error", (error) => resume(Effect.fail(error)))
    sent.once("response", (response) => {
      const parts: Array<Buffer> = []
      response.on("data", (part: Buffer) => parts.push(part))
      response.once("error", (error) => resume(Effect.fail(error)))
      response.once("end", () =>
        resume(
          Effect.succeed({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(parts).toString()
          })
        )
      )
    })
    sent.end(body)
    return Effect.sync(() => sent.destroy())
  })

/** The `error` of a refusal's body. */
export const refusalOf = (answer: Answer): { readonly type: string; readonly message: string } =>
  JSON.parse(answer.text).error

/** An open connection, gone with the scope. */
export const dial = (place: Place) =>
  Effect.acquireRelease(
    Effect.callback<Socket, Error>((resume) => {
      const socket = openTo(place, () => resume(Effect.succeed(socket)))
      socket.once("error", (error) => resume(Effect.fail(error)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Everything that the peer sends until it closes. */
export const untilClosed = (socket: Socket) =>
  Effect.callback<string>((resume) => {
    const parts: Array<Buffer> = []
    socket.on("data", (part) => parts.push(part))
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(Buffer.concat(parts).toString())))
  })

/** The next bytes of the peer that complete what is waited for. */
export const until = (socket: Socket, wanted: string) =>
  Effect.callback<string>((resume) => {
    let text = ""
    const onData = (part: Buffer) => {
      text += part.toString()
      if (!text.includes(wanted)) return
      socket.off("data", onData)
      resume(Effect.succeed(text))
    }
    socket.on("data", onData)
  })
