/** HTTP on TCP, with TLS or, on loopback, without. The limits are those of the Unix sockets. */
import { createServer, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { Effect, Redacted, Runtime, Schema } from "effect"
import { HTTP_HEADERS_MS_MAX, type HttpApp, serve, type ServeOptions, serverLimits } from "#src/shared/wire/http.ts"
import { formatPlace } from "#src/shared/wire/hostPort.ts"

/** An address that cannot be listened on. */
export class ListenRefused extends Schema.TaggedError<ListenRefused>()("ListenRefused", {
  place: Schema.String,
  /** Node's code, such as EADDRINUSE. */
  code: Schema.String
}) {
  /** A port that is taken may become free; anything else needs a person. */
  override get [Runtime.errorExitCode]() {
    return this.code === "EADDRINUSE" ? 75 : 78
  }
  override get message() {
    const cannot = `choird cannot listen on ${this.place}`
    return this.code === "EADDRINUSE"
      ? `${cannot}: another program does. Stop it, or choose another port`
      : `${cannot} (${this.code}): choose an address of this host and a port that its user may open`
  }
}

/** The certificate chain and the private key of a server, as PEM. */
export interface TlsFiles {
  /** The server's certificate, followed by the intermediate ones. */
  readonly cert: string
  readonly key: Redacted.Redacted
}

export interface TcpOptions extends ServeOptions {
  /** A name or address; empty for every address of the host. */
  readonly host: string
  /** 0 lets the kernel choose. */
  readonly port: number
  readonly tls?: TlsFiles
}

const makeServer = (options: TcpOptions): Server => {
  const limits = serverLimits(options)
  const { tls } = options
  if (tls === undefined) return createServer(limits)
  return createTlsServer({
    ...limits,
    cert: tls.cert,
    key: Redacted.value(tls.key),
    minVersion: "TLSv1.2",
    // Only this protocol is spoken, and a handshake is as slow as a head may be.
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: options.headersMsMax ?? HTTP_HEADERS_MS_MAX
  })
}

/** Serves an application on TCP until the scope closes, and returns the port. */
export const listenTcp = Effect.fn("listenTcp")(function* (app: HttpApp, options: TcpOptions) {
  const { host, port } = options
  const server = yield* serve(app, () => makeServer(options), options)
  return yield* Effect.callback<number, ListenRefused>((resume) => {
    const place = formatPlace(host, port)
    const fail = (cause: NodeJS.ErrnoException) =>
      resume(Effect.fail(new ListenRefused({ place, code: cause.code ?? cause.message })))
    server.once("error", fail)
    server.listen({ port, ...(host === "" ? {} : { host }) }, () => {
      server.off("error", fail)
      const bound = server.address()
      resume(Effect.succeed(typeof bound === "object" && bound !== null ? bound.port : port))
    })
  })
})
