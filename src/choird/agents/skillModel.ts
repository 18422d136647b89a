/** The model by which a skill of an agent is priced: the dearer one of those that its lanes use by default. Pure. */
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { WorkingModel } from "#src/shared/image/skillBounds.ts"
import { answerTokensOf } from "#src/shared/model/quirks.ts"

const perCall = ({ context_window, price }: WorkingModel) =>
  price === undefined ? Infinity : price.input * context_window

export const skillModel = (config: Config, agent_id: AgentId): WorkingModel | undefined => {
  const agent = Object.hasOwn(config.agents, agent_id) ? config.agents[agent_id] : undefined
  if (agent === undefined) return undefined
  const { core_llm, llm } = agent.defaults
  const models = [llm, core_llm ?? llm].flatMap((name) =>
    Object.hasOwn(config.models, name) ? (config.models[name] ?? []) : []
  )
  return models
    .map((model): WorkingModel => ({ ...model, max_tokens: answerTokensOf(model) }))
    .toSorted((a, b) => perCall(b) - perCall(a))[0]
}
