/** The transports between agents and choird: config.json's `transport`, which the command line overrides. */
import { resolve } from "node:path"
import { Context, Result, Runtime, Schema } from "effect"
import { HttpTransport, type ListenPlace, parseListen } from "#schema/Transport.ts"

/** The transport options of choird's command line. */
export interface TransportFlags {
  /** `uds`: sockets alone. `both`: also TCP, and agents use their sockets. `http`: also TCP, and agents use it. */
  readonly transport?: "uds" | "http" | "both"
  readonly listen?: string
  readonly tls_cert?: string
  readonly tls_key?: string
}

/** The flags for `parseArgs`. */
export const TRANSPORT_OPTIONS = {
  transport: { type: "string" },
  listen: { type: "string" },
  "tls-cert": { type: "string" },
  "tls-key": { type: "string" }
} as const

type Values = { readonly [Name in keyof typeof TRANSPORT_OPTIONS]?: string | undefined }

const isTransport = (text: string) => text === "uds" || text === "http" || text === "both"

/** The given options; `undefined` if they are invalid. Paths are relative to the folder that choird was started in. */
export const transportFlags = (values: Values): TransportFlags | undefined => {
  const { listen, "tls-cert": cert, "tls-key": key, transport } = values
  if (transport !== undefined && !isTransport(transport)) return undefined
  return {
    ...(transport === undefined ? {} : { transport }),
    ...(listen === undefined ? {} : { listen }),
    ...(cert === undefined ? {} : { tls_cert: resolve(cert) }),
    ...(key === undefined ? {} : { tls_key: resolve(key) })
  }
}

/** The flags of this choird; none unless its main program sets them. */
export const CommandLine = Context.Reference<TransportFlags>("choir/choird/CommandLine", { defaultValue: () => ({}) })

/** The transport of config.json or the command line cannot be served. */
export class TransportRefused extends Schema.TaggedError<TransportRefused>()("TransportRefused", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `transport.http cannot be served: ${this.problem}`
  }
}

/** The listener to open. */
export interface TcpPlan extends ListenPlace {
  readonly files: { readonly cert: string; readonly key: string } | undefined
  /** Whether choird's own agents use it instead of their sockets. */
  readonly forAgents: boolean
}

const LISTEN_DEFAULT = "127.0.0.1:9400"

const decode = Schema.decodeUnknownResult(HttpTransport, { errors: "all" })

/** The listener, or `undefined` for sockets alone. Certificate and key come from the same source. */
export const transportPlan = (
  configured: HttpTransport | undefined,
  flags: TransportFlags
): Result.Result<TcpPlan | undefined, TransportRefused> => {
  const { listen, tls_cert, tls_key, transport } = flags
  const given = listen !== undefined || tls_cert !== undefined || tls_key !== undefined
  const mode = transport ?? (configured !== undefined || given ? "both" : "uds")
  if (mode === "uds") {
    const problem = "--transport=uds listens on no address; leave out --listen, --tls-cert and --tls-key"
    return given ? Result.fail(new TransportRefused({ problem })) : Result.succeed(undefined)
  }
  const tls = tls_cert === undefined && tls_key === undefined ? { ...configured } : { tls_cert, tls_key }
  const wanted = {
    listen: listen ?? configured?.listen ?? LISTEN_DEFAULT,
    ...(tls.tls_cert === undefined ? {} : { tls_cert: tls.tls_cert }),
    ...(tls.tls_key === undefined ? {} : { tls_key: tls.tls_key })
  }
  return Result.match(decode(wanted), {
    onFailure: ({ message }) => Result.fail(new TransportRefused({ problem: message })),
    onSuccess: (http) => {
      const { host, port } = parseListen(http.listen) ?? { host: "", port: 0 }
      const { tls_cert: cert, tls_key: key } = http
      const files = cert === undefined || key === undefined ? undefined : { cert, key }
      // Always the same address for `localhost`, whatever the hosts file says.
      const address = host === "localhost" ? "127.0.0.1" : host
      return Result.succeed({ host: address, port, files, forAgents: mode === "http" })
    }
  })
}
