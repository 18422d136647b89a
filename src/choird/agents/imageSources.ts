/** The sources of an agent's image, from the running configuration and the agent's bindings. */
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { buildSecretProblem, defaultBindings } from "#src/choird/images/imageSecrets.ts"
import type { ImageSources } from "#src/choird/images/Images.ts"
import type { AgentView } from "./AgentViews.ts"

/** The tools' secrets are checked against the bindings of the running agent, else against those of its next start. */
export const makeImageSources = Effect.map(ConfigStore, (store) =>
  Effect.fnUntraced(function* (
    agent_id: AgentId,
    { bindings }: Pick<AgentView, "bindings">
  ): Effect.fn.Return<ImageSources> {
    const { config } = yield* store.current
    const repo = Object.hasOwn(config.agents, agent_id) ? config.agents[agent_id]?.repo : undefined
    const bound = bindings ?? defaultBindings(config, agent_id)
    if (repo === undefined || bound === undefined)
      return yield* Effect.die(`the lifecycle knows ${agent_id} and the configuration does not`)
    return {
      global: config.global_repo,
      agent: repo,
      git_identity: bindings?.git_identity,
      secretProblem: buildSecretProblem(config, yield* store.secrets, agent_id, bound)
    }
  })
)
