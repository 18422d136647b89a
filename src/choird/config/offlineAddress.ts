/** Where agents find the offline model: at a place that nobody knows before choird holds it. */
import { Context, Effect } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { isServedHere } from "#src/shared/config/offlineEndpoint.ts"

/** An address at which no program can listen. */
export const NOWHERE = "http://127.0.0.1:0/v1"

/** The endpoint of the offline model of this choird. Without one, agents are sent to nobody rather than to the program that has config.json's port. */
export const OfflineAddress = Context.Reference<Effect.Effect<string>>("choir/choird/OfflineAddress", {
  defaultValue: () => Effect.succeed(NOWHERE)
})

/** An agent's share in which the models that choird serves have the address that they are served at. */
export const withOfflineAddress = Effect.fnUntraced(function* (share: AgentConfig) {
  if (!Object.values(share.models).some(isServedHere)) return share
  const endpoint = yield* yield* OfflineAddress
  const models = Object.entries(share.models).map(([name, model]) => [
    name,
    isServedHere(model) ? { ...model, endpoint } : model
  ])
  return { ...share, models: Object.fromEntries(models) as AgentConfig["models"] }
})
