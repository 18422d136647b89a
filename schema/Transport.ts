/**
 * Where the agents' API listens on TCP (`transport.http` of config.json). Without TLS it is for this host alone: a
 * lease token in plain text must not cross a network.
 */
import { Schema } from "effect"
import { PORT_MAX } from "./Port.ts"

/** The place where a TCP listener is bound. */
export interface ListenPlace {
  /** A name or an address without brackets; empty for every address of the host. */
  readonly host: string
  /** 0 is a free port that the kernel chooses, and that choird takes again after a restart. */
  readonly port: number
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9][a-z0-9-]{0,62})*\.?$/iu
const LISTEN = /^(?<host>\[[0-9a-f:.]{2,45}\]|[^:[\]\s]*):(?<port>\d{1,5})$/iu

/** Reads `host:port`, `[IPv6]:port` or `:port`; `undefined` for anything else. */
export const parseListen = (text: string): ListenPlace | undefined => {
  const { host = "", port = "" } = LISTEN.exec(text)?.groups ?? {}
  if (port === "" || Number(port) > PORT_MAX) return undefined
  if (host.startsWith("[")) return { host: host.slice(1, -1), port: Number(port) }
  return host === "" || NAME.test(host) ? { host: host.toLowerCase(), port: Number(port) } : undefined
}

/** Whether nobody beyond this host reaches it. Of names only `localhost`, since any other may come to mean anything. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/u.test(host)

const Listen = Schema.String.check(
  Schema.makeFilter((text) => parseListen(text) !== undefined || "must be host:port, [IPv6]:port or :port")
)
const HostPath = Schema.String.check(
  Schema.isPattern(/^\/[^\0]*$/u, { message: "must be an absolute path of this host" })
)

/** `transport.http`: both files or none, and without them a loopback address. */
export const HttpTransport = Schema.Struct({
  listen: Listen,
  tls_cert: Schema.optionalKey(HostPath),
  tls_key: Schema.optionalKey(HostPath)
}).check(
  Schema.makeFilter(({ listen, tls_cert, tls_key }) => {
    if ((tls_cert === undefined) !== (tls_key === undefined)) {
      const missing = tls_cert === undefined ? "tls_cert" : "tls_key"
      return { path: [missing], issue: "tls_cert and tls_key belong together: give both or none" }
    }
    if (tls_cert !== undefined || isLoopback(parseListen(listen)?.host ?? "")) return true
    return { path: ["listen"], issue: "without tls_cert and tls_key it must be a loopback address, such as 127.0.0.1" }
  })
)
export type HttpTransport = typeof HttpTransport.Type
