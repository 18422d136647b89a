/** An agent's share of the configuration: the resources that it is bound to, and nothing else. */
import { GRANTS_DEFAULT } from "#schema/Capability.ts"
import { type AgentConfig } from "#schema/AgentConfig.ts"
import { type Config, grantsOf } from "#schema/Config.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { AgentId, ResourceName, SecretName } from "#schema/Ids.ts"
import { ownAddresses } from "#src/shared/config/clearText.ts"
import { hostWayOut } from "./hostWayOut.ts"
import { writersAt } from "#src/shared/config/people.ts"
import { secretsOfTools } from "#src/shared/image/toolNeeds.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"

/** Addresses of the host that an agent learns. */
const OWN_ADDRESSES_MAX = 256

/** A name such as `constructor` is legal, so a plain index would find what config.json does not hold. */
const own = <A>(table: Readonly<Record<string, A>>, name: string | undefined): A | undefined =>
  name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined

/** The bound models and all that their `fallback` leads to. */
const boundModels = (config: Config, bindings: Pick<ResourceBindings, "llm" | "core_llm">): AgentConfig["models"] => {
  const found = new Map<ResourceName, Config["models"][ResourceName]>()
  const waiting: Array<ResourceName> = [bindings.llm, bindings.core_llm]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const model = own(config.models, name)
    if (model === undefined || found.has(name)) continue
    found.set(name, model)
    waiting.push(...model.fallback)
  }
  return Object.fromEntries(found)
}

/** The search engine that an agent names, or the only one. */
const searchOf = ({ search }: Config, name: ResourceName | undefined) => {
  const engines = Object.values(search)
  return name === undefined && engines.length === 1 ? engines[0] : own(search, name)
}

/** A voice profile with the service that speaks in it. */
const voiceOf = (config: Config, name: string | undefined): AgentConfig["voice"] => {
  const profile = own(config.voice_profiles, name)
  const tts = own(config.tts, profile?.tts)
  return profile === undefined || tts === undefined ? undefined : { profile, tts }
}

/** Without a browser of this host its tool is not offered. */
const offeredWeb = (web: NonNullable<AgentConfig["web"]> = "off") =>
  web === "browse" && chromiumProgram() === undefined ? "fetch" : web

/** @param agent_id the agent whose repository is included. */
export const agentConfig = (
  config: Config,
  bindings: Omit<ResourceBindings, "dm">,
  agent_id?: AgentId
): AgentConfig => {
  const git_identity = own(config.git_identities, bindings.git_identity)
  const repo = own(config.agents, agent_id)?.repo
  const search = searchOf(config, bindings.search)
  const notion = own(config.notion_integrations, bindings.notion)
  const email = own(config.email_accounts, bindings.email)
  const voice = voiceOf(config, bindings.voice_profile)
  const way_out = hostWayOut()
  const writers = writersAt(config, bindings.dms ?? [])
  return {
    llm: bindings.llm,
    core_llm: bindings.core_llm,
    models: boundModels(config, bindings),
    ...(git_identity === undefined ? {} : { git_identity }),
    ...(repo === undefined ? {} : { repo }),
    ...(search === undefined ? {} : { search }),
    ...(notion === undefined ? {} : { notion }),
    ...(email === undefined ? {} : { email }),
    ...(voice === undefined ? {} : { voice }),
    budgets: config.budgets,
    memory: config.memory,
    jobs: config.jobs,
    approvals: config.approvals,
    grants: agent_id === undefined ? GRANTS_DEFAULT : grantsOf(config.skills, agent_id),
    heartbeat_interval_ms: config.heartbeat_interval_ms,
    crash_detection_threshold_ms: config.crash_detection_threshold_ms,
    rate_limit_retry_ms: config.rate_limit_retry_ms,
    ...(way_out === undefined ? {} : { way_out }),
    ...(writers === undefined ? {} : { writers: Object.fromEntries(writers) }),
    own_addresses: [...ownAddresses()].slice(0, OWN_ADDRESSES_MAX),
    web: offeredWeb(own(config.agents, agent_id)?.web)
  }
}

/** The secrets that the bound resources name: never those of a gateway, the database, or the host's own workers. */
export const boundSecrets = (config: Config, bindings: Omit<ResourceBindings, "dm">): ReadonlySet<SecretName> => {
  const share = agentConfig(config, bindings)
  return new Set([...Object.values(share.models).flatMap(({ secret }) => secret ?? []), ...secretsOfTools(share)])
}
