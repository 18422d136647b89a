/** Models that agents in containers could not ask, since `runtime.allow` lacks them: each call would only time out. */
import { allowedPlace } from "#schema/AllowedHost.ts"
import type { Config } from "#schema/Config.ts"

/** One sentence for each, with the entry that is missing. */
export const unlistedModels = ({ models, runtime }: Config): ReadonlyArray<string> => {
  if (runtime.network !== "allowlist") return []
  const listed = new Set(
    runtime.allow.flatMap((entry) => {
      const place = allowedPlace(entry)
      return typeof place === "string" ? [] : [`${place.host}:${place.port}`]
    })
  )
  return Object.entries(models).flatMap(([name, { endpoint }]) => {
    const { hostname, port, protocol } = new URL(endpoint)
    const place = `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`
    return listed.has(place) ? [] : [`agents cannot reach the model ${name}: runtime.allow lacks "${place}"`]
  })
}
