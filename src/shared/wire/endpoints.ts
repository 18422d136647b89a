/** The agent's way to choird over TCP. It trusts one certificate or authority and nothing else. */
import { readFileSync, statSync } from "node:fs"
import { Effect, Layer, Schema } from "effect"
import { isLoopback } from "#schema/Transport.ts"
import { hostOf } from "./hostPort.ts"
import { layerUndiciClient } from "./undiciClient.ts"
import { CLIENT_CONNECTIONS_MAX } from "./sockets.ts"

/** A file that holds a certificate with its chain, or a key. */
export const TLS_FILE_BYTES_MAX = 256 * 1024

/** An endpoint that a token must not be sent to. */
export class EndpointRefused extends Schema.TaggedError<EndpointRefused>()("EndpointRefused", {
  endpoint: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `choird cannot be asked at ${this.endpoint}: ${this.problem}`
  }
}

export interface Endpoint {
  /** `https://host:port`, or `http://` with a loopback address. */
  readonly url: string
  /** A file with the certificate, or the authority, that is trusted; https needs one. */
  readonly ca?: string | undefined
  /** How long an answer that has begun may bring nothing, in ms; 0, the default, means no limit. */
  readonly idle_ms?: number
}

/** The origin, when it is one that may be used. */
const originOf = ({ ca, url }: Endpoint) => {
  const refused = (problem: string) => Effect.fail(new EndpointRefused({ endpoint: url, problem }))
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || parsed.href !== `${parsed.origin}/`) return refused("it must be https://HOST:PORT")
  const host = hostOf(parsed)
  switch (parsed.protocol) {
    case "https:":
      return ca === undefined ? refused("https needs the certificate to trust (--ca)") : Effect.succeed(parsed.origin)
    case "http:":
      return isLoopback(host) ? Effect.succeed(parsed.origin) : refused("http is allowed only for loopback addresses")
    default:
      return refused("it must be https://HOST:PORT")
  }
}

const readCa = (endpoint: string, path: string) =>
  Effect.try({
    try: () => {
      if (statSync(path).size > TLS_FILE_BYTES_MAX) throw new Error(`it has more than ${TLS_FILE_BYTES_MAX} bytes`)
      return readFileSync(path, "utf8")
    },
    catch: (cause) => new EndpointRefused({ endpoint, problem: `${path} cannot be read: ${String(cause)}` })
  })

/** An HTTP client whose every request goes to this endpoint, whatever host it names. */
export const layerEndpointClient = (endpoint: Endpoint) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const origin = yield* originOf(endpoint)
      const { ca, idle_ms = 0 } = endpoint
      const pinned = ca === undefined ? undefined : yield* readCa(endpoint.url, ca)
      return layerUndiciClient({
        origin,
        connect:
          pinned === undefined
            ? {}
            : // The certificate itself may stand in the file, without the authority that it leads to.
              { ca: pinned, allowPartialTrustChain: true, minVersion: "TLSv1.2", rejectUnauthorized: true },
        connections: CLIENT_CONNECTIONS_MAX,
        idle_ms
      })
    })
  )
