/** Models for people. */
import type { AgentModels, ModelSummary } from "#schema/OperatorApi.ts"
import { type Tried, triedWords } from "#src/choirctl/doctor/modelTrial.ts"
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

export const testedText = ({ model, name, ...tried }: Tried & { readonly name: string; readonly model: string }) =>
  `${name} works: ${triedWords(model, tried)}`
