/** The models of config.json that choird itself serves, and those that only this host reaches. */
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

/** Whether choird serves a model itself, at an address of its own choice; another host's offline model is not choird's to serve. */
export const isServedHere = ({
  endpoint,
  provider
}: {
  readonly endpoint: string
  readonly provider: string
}): boolean => provider === OFFLINE_PROVIDER && isLoopback(endpoint)
