/** An agent of the running configuration, by its name. */
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentRefused } from "./AgentRefused.ts"
import { isInFile } from "./bindings.ts"

export const notRunning = (agent_id: AgentId) =>
  new AgentRefused({
    kind: "NOT_RUNNING",
    agent_id,
    reason: `${agent_id} is not running`,
    hint: `choirctl agent start ${agent_id}`
  })

/** Finds an agent, or says why choird does not know it. */
export const makeKnown = Effect.map(ConfigStore, (store) =>
  Effect.fnUntraced(function* (agent_id: AgentId) {
    const { config } = yield* store.current
    const agent = Object.hasOwn(config.agents, agent_id) ? config.agents[agent_id] : undefined
    if (agent !== undefined) return { agent, config }
    if (yield* isInFile(store.home, agent_id))
      return yield* new AgentRefused({
        kind: "UNKNOWN_AGENT",
        agent_id,
        reason: `config.json has an agent ${agent_id} that choird has not applied`,
        hint: "choirctl config apply"
      })
    const names = Object.keys(config.agents).join(", ")
    return yield* new AgentRefused({
      kind: "UNKNOWN_AGENT",
      agent_id,
      reason: `there is no agent ${agent_id}`,
      hint: names === "" ? `choirctl agent init ${agent_id}` : `known: ${names}`
    })
  })
)
