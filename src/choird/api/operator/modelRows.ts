/** The models, voice providers and voice profiles of a configuration, as `choirctl model list` shows them. Pure. */
import type { ModelSummary } from "#schema/AgentSummary.ts"
import type { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"

const defaultOf = ({ agents }: Config, name: string): ReadonlyArray<AgentId> =>
  Object.entries(agents).flatMap(([id, { defaults }]) =>
    defaults.llm === name || defaults.core_llm === name ? [AgentId.make(id)] : []
  )

export const modelRows = (config: Config): ReadonlyArray<ModelSummary> => [
  ...Object.entries(config.models).map(([name, { fallback, model, price, provider }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "llm",
    provider,
    model,
    default_of: defaultOf(config, name),
    fallback,
    ...(price === undefined ? {} : { price: { input: price.input, output: price.output } })
  })),
  ...Object.entries(config.tts).map(([name, { model_id, provider }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "tts",
    provider,
    model: model_id
  })),
  ...Object.entries(config.voice_profiles).map(([name, { tts: provider, voice_id }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "voice",
    provider,
    model: voice_id
  }))
]
