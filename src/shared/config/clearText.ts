/** Secrets that would cross a network in the clear: every endpoint of config.json that is used with one (R34). */
import { networkInterfaces } from "node:os"
import type { Config } from "#schema/Config.ts"
import { isLoopback } from "#schema/Transport.ts"
import { hostOf } from "#src/shared/wire/hostPort.ts"
import type { PlacedProblem } from "./configProblems.ts"

interface Endpoint {
  readonly path: ReadonlyArray<string>
  readonly endpoint: string | undefined
  readonly secret: string | undefined
}

/** Every address that config.json names, with the secret that is sent there. */
const endpoints = (config: Config): ReadonlyArray<Endpoint> => {
  const table = (section: string, entries: Readonly<Record<string, { endpoint?: string; secret?: string }>>) =>
    Object.entries(entries).map(([name, { endpoint, secret }]) => ({
      path: [section, name, "endpoint"],
      endpoint,
      secret
    }))
  const { embedding, telemetry } = config
  return [
    ...table("models", config.models),
    ...table("tts", config.tts),
    ...table("stt", config.stt),
    ...table("notion_integrations", config.notion_integrations),
    ...table("search", config.search),
    { path: ["embedding", "endpoint"], endpoint: embedding?.endpoint, secret: embedding?.secret },
    { path: ["telemetry", "otlp", "endpoint"], endpoint: telemetry.otlp?.endpoint, secret: telemetry.otlp?.secret },
    ...Object.entries(config.gateways).flatMap(([name, gateway]) =>
      gateway.type === "telegram"
        ? [{ path: ["gateways", name, "api_root"], endpoint: gateway.api_root, secret: gateway.secret }]
        : []
    )
  ]
}

/** The addresses of this host: what is sent to one of them leaves it as little as what is sent to loopback. */
export const ownAddresses = (): ReadonlySet<string> =>
  new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)))

const staysHere = (endpoint: string, own: ReadonlySet<string>): boolean => {
  const url = URL.parse(endpoint)
  return url !== null && (isLoopback(hostOf(url)) || own.has(hostOf(url)))
}

/**
 * Whether what is sent to an address can be read on the way. Over http only literal addresses and `localhost` stay here, so that no name server has
 * a say; over https it is the certificate that counts. Asked again at each request with a secret, since a host's addresses change.
 */
export const isInTheClear = (endpoint: string, own: ReadonlySet<string> = ownAddresses()): boolean =>
  URL.parse(endpoint)?.protocol !== "https:" && !staysHere(endpoint, own)

/** Why a request with a secret is not sent. */
export const inTheClearText = (endpoint: string): string =>
  `no request was sent, since its secret would cross the network in the clear: ${URL.parse(endpoint)?.host ?? "its address"} is not of this host; write https:// in config.json`

/** The problem of each endpoint that a secret would reach in the clear, at the path of its key. */
export const clearTextProblems = (
  config: Config,
  own: ReadonlySet<string> = ownAddresses()
): ReadonlyArray<PlacedProblem> =>
  endpoints(config).flatMap(({ endpoint, path, secret }) =>
    endpoint === undefined || secret === undefined || !isInTheClear(endpoint, own)
      ? []
      : [
          {
            path,
            reason: `must be https://, or http:// with an address of this host: the secret "${secret}" would cross the network in the clear. Write https://, or leave out the secret where the server needs none`
          }
        ]
  )
