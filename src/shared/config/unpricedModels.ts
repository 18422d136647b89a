/** Models whose calls cost an unknown amount, because config.json has no price for them. */
import type { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { OFFLINE_PROVIDER } from "./offlineEndpoint.ts"

/** Of these models and their fallbacks those without a price, each once. The offline model costs nothing. */
export const unpricedModels = (
  { models }: Pick<Config, "models">,
  names: Iterable<ResourceName>
): ReadonlyArray<ResourceName> => {
  const used = new Set([...names].flatMap((name) => [name, ...(models[name]?.fallback ?? [])]))
  return [...used].filter((name) => {
    const model = models[name]
    return model !== undefined && model.price === undefined && model.provider !== OFFLINE_PROVIDER
  })
}

/** The warnings of a limit that can never be reached, since nobody knows what a call costs. */
export const unpricedBudget = (config: Config): ReadonlyArray<{ readonly path: string; readonly message: string }> => {
  if (config.budgets.max_cost_usd === null) return []
  const bound = Object.values(config.agents).flatMap(({ defaults: { core_llm, llm } }) => [llm, core_llm ?? llm])
  return unpricedModels(config, bound).map((name) => ({
    path: `models.${name}.price`,
    message:
      "has no price, so its calls do not count towards budgets.max_cost_usd: add the price in USD per million tokens"
  }))
}
