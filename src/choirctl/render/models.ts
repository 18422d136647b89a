/** Models for people. */
import type { AgentModels, ModelSummary } from "#schema/OperatorApi.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { fields, table } from "#src/choirctl/terminal/table.ts"

export const modelTable = (rows: ReadonlyArray<ModelSummary>, color: boolean): string =>
  rows.length === 0
    ? "no model is configured"
    : table(
        ["NAME", "TYPE", "PROVIDER", "MODEL"],
        rows.map(({ model, name, provider, type }) => [name, type, safeLine(provider), safeLine(model)]),
        color
      )

const withDefault = (used: string, configured: string) =>
  used === configured ? used : `${used} (default ${configured})`

export const agentModelsText = (models: AgentModels): string =>
  fields([
    ["agent", models.agent_id],
    ["edge", withDefault(models.llm, models.default_llm)],
    ["core jobs", withDefault(models.core_llm, models.default_core_llm)],
    ["voice", models.voice_profile ?? "none"],
    ["in use", models.in_use ? "yes" : "from the agent's next heartbeat or start on"]
  ])

interface Tried {
  readonly took_ms: number
  readonly refused_parameters: ReadonlyArray<string>
}

/** How a model that works answered. */
export const triedWords = (model: string, { refused_parameters, took_ms }: Tried): string => {
  const called = `${safeLine(model)} called a tool after ${(took_ms / 1000).toFixed(1)} s`
  return refused_parameters.length === 0
    ? called
    : `${called}; the provider refuses ${refused_parameters.join(", ")}, and agents stop sending it after the first refusal`
}

export const testedText = ({ model, name, ...tried }: Tried & { readonly name: string; readonly model: string }) =>
  `${name} works: ${triedWords(model, tried)}`
