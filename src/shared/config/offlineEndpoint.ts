/** Where config.json expects the offline model, which choird itself runs. */
import type { Config } from "#schema/Config.ts"
import { isLoopback as isLoopbackHost } from "#schema/Transport.ts"
import { hostOf } from "#src/shared/wire/hostPort.ts"

/** The provider of models that choird serves itself. */
export const OFFLINE_PROVIDER = "offline"

/** Whether only programs of this host reach an address: agents in Docker have a loopback of their own. */
export const isLoopback = (endpoint: string): boolean => isLoopbackHost(hostOf(new URL(endpoint)))

/** The models that agents in Docker cannot reach, one sentence for each. */
export const loopbackModels = ({ models }: Pick<Config, "models">): ReadonlyArray<string> =>
  Object.entries(models).flatMap(([name, { endpoint }]) =>
    isLoopback(endpoint)
      ? [
          `agents in Docker cannot reach the model ${name} at ${endpoint}: set runtime.type to sandbox, or give the model an address that other hosts can reach`
        ]
      : []
  )

/** A place to serve the offline model at. */
export interface OfflinePlace {
  /** As config.json writes it. */
  readonly endpoint: string
  readonly host: string
  readonly port: number
}

/** The places of the models whose provider is "offline", each once; another host's are not choird's to serve. */
export const offlinePlaces = ({ models }: Pick<Config, "models">): ReadonlyArray<OfflinePlace> => {
  const endpoints = Object.values(models)
    .filter(({ endpoint, provider }) => provider === OFFLINE_PROVIDER && isLoopback(endpoint))
    .map(({ endpoint }) => new URL(endpoint))
  const places = endpoints.map((url) => ({
    endpoint: url.href.replace(/\/+$/u, ""),
    host: hostOf(url),
    port: Number(url.port || 80)
  }))
  return [...new Map(places.map((place) => [`${place.host} ${place.port}`, place])).values()]
}
