/** Which resources a run is bound to (spec 6.4): an agent's defaults, and what its start overrides of them. */
import { Result } from "effect"
import type { Config } from "#schema/Config.ts"
import { boundDms, dmList, type ResourceBindings } from "#schema/ResourceBindings.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { StartAgent } from "#schema/OperatorApi.ts"

/** Why there are none, and what helps. */
export interface BindingProblem {
  readonly reason: string
  readonly hint: string
}

const TABLES = {
  workspace: "workspaces",
  llm: "models",
  core_llm: "models",
  dm: "dms",
  voice_profile: "voice_profiles",
  git_identity: "git_identities",
  notion: "notion_integrations",
  email: "email_accounts"
} as const satisfies Record<Exclude<keyof ResourceBindings, "dms">, keyof Config>

/** The first binding whose name config.json does not hold; also of bindings that an older configuration gave. */
export const unknownBinding = (config: Config, bindings: ResourceBindings): BindingProblem | undefined => {
  for (const [key, table] of Object.entries(TABLES)) {
    const names = key === "dm" ? boundDms(bindings) : [bindings[key as keyof typeof TABLES]]
    const name = names.find((one) => one !== undefined && !Object.hasOwn(config[table], one))
    if (name === undefined) continue
    const known = Object.keys(config[table])
    return {
      reason: `there is no ${key.replaceAll("_", " ")} "${name}"`,
      hint: known.length === 0 ? `add one to ${table} in config.json` : `choose one of ${known.join(", ")}`
    }
  }
  return undefined
}

type Optional = "voice_profile" | "git_identity" | "notion" | "email"
const OPTIONAL: ReadonlyArray<Optional> = ["voice_profile", "git_identity", "notion", "email"]

/** An `llm` of the start is edge's; core jobs use it as well unless the agent names a `core_llm` (E14). */
export const bindingsOf = (
  config: Config,
  agent_id: AgentId,
  { defaults }: Config["agents"][AgentId],
  options: StartAgent
): Result.Result<ResourceBindings, BindingProblem> => {
  const dms = dmList(options.dm ?? defaults.dm)
  const [dm] = dms
  if (dm === undefined) {
    const known = Object.keys(config.dms).join(" or ")
    return Result.fail({
      reason: `${agent_id} has no DM to speak through`,
      hint: known === "" ? "add a DM to dms in config.json" : `choirctl agent start ${agent_id} --dm ${known}`
    })
  }
  const llm = options.llm ?? defaults.llm
  const rest: Partial<Record<Optional, ResourceName>> = {}
  for (const key of OPTIONAL) {
    const name = options[key] ?? defaults[key]
    if (name !== undefined) rest[key] = name
  }
  const core_llm = defaults.core_llm ?? llm
  const bindings = { workspace: options.workspace ?? defaults.workspace, llm, core_llm, dm, dms, ...rest }
  const unknown = unknownBinding(config, bindings)
  return unknown === undefined ? Result.succeed(bindings) : Result.fail(unknown)
}
