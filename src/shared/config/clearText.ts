/** Secrets that would cross a network in the clear: every endpoint of config.json that is used with one (R34). */
import { networkInterfaces } from "node:os"
import type { Config } from "#schema/Config.ts"
import { isLoopback } from "#schema/Transport.ts"
import { hostOf } from "#src/shared/wire/hostPort.ts"
import type { PlacedProblem } from "./configProblems.ts"
import { resourceSecrets } from "./resourceSecrets.ts"

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
  resourceSecrets(config).flatMap(({ endpoint, secret }) =>
    endpoint === undefined || secret === undefined || !isInTheClear(endpoint.url, own)
      ? []
      : [
          {
            path: endpoint.path,
            reason: `must be https://, or http:// with an address of this host: the secret "${secret}" would cross the network in the clear. Write https://, or leave out the secret where the server needs none`
          }
        ]
  )
