import { Effect, Layer } from "effect"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { Models } from "#src/choird/agents/Models.ts"

const small = ResourceName.make("small")

/** The models of each agent, the same for all; a change of them is told. */
export const memoryModels = (told: (what: string) => Effect.Effect<void>) => {
  const of = (agent_id: AgentId) => ({
    agent_id,
    llm: small,
    core_llm: small,
    default_llm: small,
    default_core_llm: small,
    voice_profile: null,
    in_use: true
  })
  return Layer.mock(Models, {
    get: (agent_id) => Effect.succeed(of(agent_id)),
    set: (agent_id, who, { core_llm, llm }) =>
      Effect.as(told(`${who} sets ${llm ?? "-"} ${core_llm ?? "-"}`), of(agent_id))
  })
}
