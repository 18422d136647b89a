/** Agents as an operator starts, stops, builds and updates them, and their models, skills and tools. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { AgentHealth, AgentStatus, AgentSummary, Spent, SpentUsd } from "./AgentSummary.ts"
import { ApiErrors, ErrorDetail } from "./ApiError.ts"
import { AgentId, LaneId, ResourceName, Rev, SessionId } from "./Ids.ts"
import { Progress } from "./Progress.ts"
import { DmNames, ResourceBindings } from "./ResourceBindings.ts"
import { NAMED_BINDINGS } from "./Resources.ts"
import { SkillName, SkillSpec } from "./Skill.ts"
import { SkillGrade, SkillReport } from "./SkillCheck.ts"
import { ExecutionClass } from "./SkillContract.ts"
import { SkillTier } from "./SkillRegistryEntry.ts"
import { TriedSkill, TriedTool } from "./ContainedTrial.ts"
import { AddedSkill, AddSkill, OfferSkill, TRIED_FILES_MAX, SkillFile, SkillOffer } from "./SkillOffer.ts"

export const AgentDetail = Schema.Struct({
  agent_id: AgentId,
  status: AgentStatus,
  session_id: Schema.NullOr(SessionId),
  lanes: Schema.Array(
    Schema.Struct({
      lane: LaneId,
      state: Schema.String,
      skill: Schema.NullOr(Schema.String),
      skill_state: Schema.NullOr(Schema.String),
      step: Schema.Natural
    })
  ),
  budgets: Schema.Struct({ tokens: Spent, tool_calls: Spent, cost_usd: SpentUsd, core_jobs: Spent }),
  resource_bindings: Schema.NullOr(ResourceBindings),
  /** Resources that it keeps from other agents, from its start to its stop. */
  leases: Schema.Array(Schema.Struct({ kind: Schema.String, name: Schema.String })),
  uptime_ms: Schema.Natural,
  config_version: Schema.Natural,
  /** As in {@link AgentSummary}. */
  config_version_latest: Schema.optionalKey(Schema.Natural),
  last_rev: Rev,
  acked_rev: Rev,
  health: Schema.optionalKey(AgentHealth),
  /** How many approvals wait for a person. */
  approvals_pending: Schema.Natural,
  /** Why the agent is where it is when that needs saying: the last crash, the breaker, a frozen session. */
  reason: Schema.NullOr(Schema.String)
})
export type AgentDetail = typeof AgentDetail.Type

/** The models that an agent uses, or would use at its next start, and the defaults of config.json that it returns to (E14). */
export const AgentModels = Schema.Struct({
  agent_id: AgentId,
  llm: ResourceName,
  core_llm: ResourceName,
  default_llm: ResourceName,
  default_core_llm: ResourceName,
  voice_profile: Schema.NullOr(ResourceName),
  /** Whether the running agent has the newest configuration; it has after its next heartbeat. */
  in_use: Schema.Boolean
})
export type AgentModels = typeof AgentModels.Type

/** Overrides of an agent's defaults for one run. `fresh` starts a new session instead of resuming the earlier one (D19). */
export const StartAgent = Schema.Struct({
  workspace: Schema.optionalKey(ResourceName),
  llm: Schema.optionalKey(ResourceName),
  core_llm: Schema.optionalKey(ResourceName),
  voice_profile: Schema.optionalKey(ResourceName),
  git_identity: Schema.optionalKey(ResourceName),
  notion: Schema.optionalKey(ResourceName),
  email: Schema.optionalKey(ResourceName),
  search: Schema.optionalKey(ResourceName),
  dm: Schema.optionalKey(DmNames),
  fresh: Schema.optionalKey(Schema.Boolean)
})
export type StartAgent = typeof StartAgent.Type

const { fresh: _, ...overrides } = StartAgent.fields
/** The overrides of a restart. Those of an earlier start stay, and everything else comes from the agent's defaults. */
export const RestartAgent = Schema.Struct(overrides)
export type RestartAgent = typeof RestartAgent.Type

/** A restarted agent. `keeps` lists bindings that its start named and whose default differs; null means no default. */
export const RestartedAgent = Schema.Struct({
  ...AgentSummary.fields,
  keeps: Schema.Array(
    Schema.Struct({
      binding: Schema.Literals(NAMED_BINDINGS),
      name: Schema.String,
      default: Schema.NullOr(Schema.String)
    })
  )
})
export type RestartedAgent = typeof RestartedAgent.Type

export const BuildReport = Schema.Struct({
  agent_id: AgentId,
  image_version: Schema.String,
  path: Schema.String,
  built: Schema.Boolean,
  warnings: Schema.Array(Schema.String)
})

export const BuildProgress = Progress(BuildReport)
export type BuildProgress = typeof BuildProgress.Type

const error = ApiErrors
const ndjson = <S extends Schema.Constraint>(schema: S) => HttpApiSchema.StreamNdjson({ schema })

const agent = { id: AgentId } as const

export const AgentsApi = HttpApiGroup.make("agents").add(
  HttpApiEndpoint.get("list", "/agents", { success: Schema.Array(AgentSummary), error }),
  HttpApiEndpoint.get("status", "/agents/:id", { params: agent, success: AgentDetail, error }),
  HttpApiEndpoint.post("build", "/agents/:id/build", {
    params: agent,
    payload: Schema.Struct({ force: Schema.optionalKey(Schema.Boolean) }),
    success: ndjson(BuildProgress),
    error
  }),
  HttpApiEndpoint.post("start", "/agents/:id/start", {
    params: agent,
    payload: StartAgent,
    success: AgentSummary,
    error
  }),
  HttpApiEndpoint.post("stop", "/agents/:id/stop", { params: agent, success: AgentSummary, error }),
  HttpApiEndpoint.post("restart", "/agents/:id/restart", {
    params: agent,
    payload: RestartAgent,
    success: RestartedAgent,
    error
  }),
  HttpApiEndpoint.get("models", "/agents/:id/models", { params: agent, success: AgentModels, error }),
  HttpApiEndpoint.post("setModels", "/agents/:id/models", {
    params: agent,
    payload: Schema.Struct({
      llm: Schema.optionalKey(ResourceName),
      core_llm: Schema.optionalKey(ResourceName),
      voice_profile: Schema.optionalKey(ResourceName)
    }),
    success: AgentModels,
    error
  })
)

/**
 * The outcome of an update for one agent. `redeployed`: it runs on the newest image now. `built`: it has a new image and does not run. `skipped`: it
 * was up to date. `failed`: `error` says why; the agent is as it was, and one that did not come up from its new image
 * runs on the last one that worked.
 */
export const UpdateOutcome = Schema.Struct({
  agent_id: AgentId,
  outcome: Schema.Literals(["built", "redeployed", "skipped", "failed"]),
  image_version: Schema.NullOr(Schema.String),
  warnings: Schema.Array(Schema.String),
  error: Schema.optionalKey(ErrorDetail)
})
export type UpdateOutcome = typeof UpdateOutcome.Type

/** Steps as they happen; the last line has a row for each agent that was asked for. */
export const UpdateProgress = Progress(Schema.Array(UpdateOutcome))
export type UpdateProgress = typeof UpdateProgress.Type

const success = HttpApiSchema.StreamNdjson({ schema: UpdateProgress })

export const UpdateApi = HttpApiGroup.make("updates").add(
  HttpApiEndpoint.post("one", "/agents/:id/update", { params: { id: AgentId }, success, error: ApiErrors }),
  HttpApiEndpoint.post("all", "/update-all", { success, error: ApiErrors })
)

/** Whether it comes with every agent or with the agent's image. */
const SkillSource = Schema.Literals(["built-in", "image"])

/** A row of `skill list`. */
export const SkillSummary = Schema.Struct({
  name: SkillName,
  source: SkillSource,
  description: Schema.String,
  states: Schema.Natural,
  max_steps: Schema.Natural,
  execution_class: ExecutionClass,
  tier: Schema.NullOr(SkillTier),
  grade: SkillGrade,
  /** Points of the gate that it has, of nine. */
  passed: Schema.Natural
})
export type SkillSummary = typeof SkillSummary.Type

export const SkillDetail = Schema.Struct({ source: SkillSource, spec: SkillSpec, report: SkillReport })
export type SkillDetail = typeof SkillDetail.Type

/** A row of `tool list`. `effect` is the greatest that a call may have, `exposure` the lanes that have the tool. */
export const ToolSummary = Schema.Struct({
  name: Schema.String,
  source: Schema.Literals(["built-in", "global", "agent"]),
  effect: Schema.NullOr(Schema.String),
  exposure: Schema.NullOr(Schema.String),
  description: Schema.NullOr(Schema.String),
  /** The version in a repository tool's manifest. */
  version: Schema.optionalKey(Schema.String),
  /** Why the agent does not have this tool at the moment; absent for one that it has. */
  not_offered: Schema.optionalKey(Schema.String)
})
export type ToolSummary = typeof ToolSummary.Type

/** One call of a tool, outside of every session. `confirmed`: the operator agreed that it acts outside. */
export const TryTool = Schema.Struct({
  tool: Schema.String.check(Schema.isMaxLength(64)),
  input: Schema.Json,
  confirmed: Schema.optionalKey(Schema.Boolean)
})

/** A skill that is tried, by its name in the agent's image or as it is written, in a workspace with these files. */
export const TrySkill = Schema.Struct({
  skill: Schema.Union([SkillName, SkillSpec]),
  input: Schema.optionalKey(Schema.Json),
  model: Schema.optionalKey(ResourceName),
  files: Schema.Array(SkillFile).check(Schema.isMaxLength(TRIED_FILES_MAX)),
  /** The other files of a written skill's folder, which it may read while it is at work. */
  references: Schema.optionalKey(Schema.Array(SkillFile).check(Schema.isMaxLength(TRIED_FILES_MAX)))
})

export const SkillApi = HttpApiGroup.make("skills").add(
  HttpApiEndpoint.get("list", "/agents/:id/skills", {
    params: agent,
    success: Schema.Array(SkillSummary),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("show", "/agents/:id/skills/:name", {
    params: { ...agent, name: SkillName },
    success: SkillDetail,
    error: ApiErrors
  }),
  HttpApiEndpoint.get("files", "/agents/:id/skills/:name/files", {
    params: { ...agent, name: SkillName },
    success: Schema.Array(SkillFile),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("tools", "/agents/:id/tools", {
    params: agent,
    success: Schema.Array(ToolSummary),
    error: ApiErrors
  }),
  HttpApiEndpoint.post("tryTool", "/agents/:id/tools/try", {
    params: agent,
    payload: TryTool,
    success: TriedTool,
    error: ApiErrors
  }),
  HttpApiEndpoint.post("trySkill", "/agents/:id/skills/try", {
    params: agent,
    payload: TrySkill,
    success: TriedSkill,
    error: ApiErrors
  }),
  HttpApiEndpoint.post("offer", "/skills/offer", { payload: OfferSkill, success: SkillOffer, error: ApiErrors }),
  HttpApiEndpoint.post("add", "/skills/add", { payload: AddSkill, success: AddedSkill, error: ApiErrors })
)
