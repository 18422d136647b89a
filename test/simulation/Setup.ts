/** How the agent of a seed is configured: real defaults, limits that the seed makes small or not, and versions that can be told apart. */
import { Schema } from "effect"
import { AgentConfig } from "#schema/AgentConfig.ts"
import { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import type { JobProfile } from "#schema/JobProfile.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import type { Faults } from "./Faults.ts"
import { modelsOf } from "./models.ts"
import { makeSeed } from "./Seed.ts"
import { hasContracts, hasTriggers, isLarge, profilesOf, skillsOf } from "./skills.ts"

/** Values that must never be found anywhere but in a request's authorization header. */
export const CANARY = "canary-5f3a9c"

/** Tokens that each of the models has room for. */
export const CONTEXT_TOKENS = 16_000

const base = Schema.decodeSync(Config)({
  global_repo: { url: "/global" },
  models: { large: { provider: "sim", model: "large", endpoint: "https://provider/v1" } }
})

/** Tokens of a window by the events that stay in it, so that some seeds compact often; else the context decides. */
const WINDOW_TOKENS: Readonly<Record<number, number>> = { 6: 1500, 20: 4000 }

/** The bindings of the only agent. */
export const BINDINGS = {
  workspace: ResourceName.make("ws"),
  llm: ResourceName.make("large"),
  core_llm: ResourceName.make("small"),
  dm: ResourceName.make("me")
}

export interface Setup {
  readonly crash_detection_threshold_ms: number
  /** The configuration of a version; each version says its number in two places that belong together. */
  config(version: number): AgentConfig
  /** Whether its model proposes changes of the agent. */
  readonly proposes: boolean
  /** The skills of the agent's image. */
  readonly skills: ReadonlyMap<string, SkillSpec>
  /** The profiles of its jobs. */
  readonly profiles: ReadonlyMap<string, JobProfile>
  /** Whether people forward what others wrote, and words begin a skill. */
  readonly heeds: boolean
  /** Whether tools often read text from outside, and people often order a compaction. */
  readonly outside: boolean
  /** Whether people and models say things that hardly fit an event, or do not. */
  readonly large: boolean
  /** Whether jobs begin so many slow tools at once that they take up all that they may. */
  readonly busy: boolean
  /** What the servers of its models change of their entries; nothing where one plain server has them all. */
  readonly servers: ReturnType<typeof modelsOf>
  /** Whether its models never say what to remember of what leaves a window. */
  readonly forgets: boolean
  /** Whether a choird of another home wants the same database. */
  readonly rivalled: boolean
  /** Whether another agent's history never stops growing. */
  readonly hoards: boolean
}

/** One seed of so many reads much from outside, compacts often, and asks a person where that is left. */
const OUTSIDE_SEEDS = 5

export const makeSetup = (seed: number, faults: Faults): Setup => {
  const draw = makeSeed(seed, "setup")
  const small = faults.kinds.has("small-budgets")
  const drawn = {
    max_core_jobs: draw.between(1, 4),
    total_session_tokens: draw.pick([20_000, 100_000, 400_000]),
    max_cost_usd: draw.pick([null, null, 0.1]),
    max_tool_calls_per_session: draw.pick([15, 60, 200]),
    per_job_max_steps: draw.between(3, 12),
    per_job_max_tool_calls: draw.between(3, 20),
    per_job_wall_time_ms: draw.pick([5000, 20_000, 60_000]),
    max_injections_per_job: draw.between(1, 4),
    turn_max_steps: draw.between(2, 8)
  }
  const budgets = small
    ? { ...base.budgets, ...drawn }
    : { ...base.budgets, max_core_jobs: 4, per_job_wall_time_ms: 120_000, total_session_tokens: 50_000_000 }
  const outside = seed % OUTSIDE_SEEDS === OUTSIDE_SEEDS - 1
  const drawn_confirm = draw.pick(["never", "never", "tainted", "always"] as const)
  const confirm_external = outside ? "tainted" : drawn_confirm
  const event_window = draw.pick([6, 20, 50])
  const heartbeat_interval_ms = draw.pick([500, 2000, 5000])
  const fallback = draw.chance(0.5) ? [ResourceName.make("spare")] : []
  const timeout_ms = draw.pick([4000, 15_000, 40_000])
  const servers = modelsOf(seed)
  const versions = new Map<number, AgentConfig>()
  const make = (version: number): AgentConfig => {
    const model = (name: string, more: object = {}) => ({
      provider: "sim",
      model: name,
      endpoint: "https://provider/v1",
      temperature: version / 1000,
      max_tokens: 200 + version,
      context_window: CONTEXT_TOKENS,
      price: { input: 2, output: 8 },
      reasoning_effort: null,
      fallback: [],
      ...more,
      ...servers[name]
    })
    return Schema.decodeSync(AgentConfig)({
      llm: BINDINGS.llm,
      core_llm: BINDINGS.core_llm,
      models: { large: model("large", { fallback, secret: "key" }), small: model("small"), spare: model("spare") },
      budgets,
      memory: { ...base.memory, event_window, window_tokens_max: WINDOW_TOKENS[event_window] ?? null },
      approvals: { timeout_ms, confirm_external },
      ...(hasContracts(seed) ? { grants: ["fs:read", "fs:write", "net"] as const } : {}),
      heartbeat_interval_ms,
      crash_detection_threshold_ms: base.crash_detection_threshold_ms,
      rate_limit_retry_ms: base.rate_limit_retry_ms
    })
  }
  return {
    crash_detection_threshold_ms: base.crash_detection_threshold_ms,
    proposes: seed % 10 === 0,
    skills: skillsOf(seed),
    profiles: profilesOf(seed),
    heeds: hasTriggers(seed),
    outside,
    large: isLarge(seed),
    busy: seed % 13 === 0,
    servers,
    forgets: seed % 22 === 0,
    rivalled: seed % 17 === 0,
    hoards: seed % 19 === 0,
    config: (version) => {
      const config = versions.get(version) ?? make(version)
      versions.set(version, config)
      return config
    }
  }
}
