/** Agents and models as lists show them. Apart from AgentsApi.ts, so that `choirctl status` need not define all that has to do with agents. */
import { Schema } from "effect"
import { AgentId, ResourceName, SessionId } from "./Ids.ts"

/** A `paused` agent is stopped until choird starts it again by itself; messages are taken meanwhile. */
export const AgentStatus = Schema.Literals([
  "stopped",
  "building",
  "starting",
  "running",
  "stopping",
  "paused",
  "crashed"
])
export type AgentStatus = typeof AgentStatus.Type

/** An amount used and its limit; `limit: null` means unlimited. */
export const Spent = Schema.Struct({ used: Schema.Finite, limit: Schema.NullOr(Schema.Finite) })

/** Money spent. `unpriced` names the models of the agent whose calls cost an unknown amount on top. */
export const SpentUsd = Schema.Struct({
  ...Spent.fields,
  unpriced: Schema.optionalKey(Schema.Array(ResourceName))
})

/** How a running agent is doing (R78). */
export const AgentHealth = Schema.Struct({
  epoch: Schema.Natural,
  /** Revisions that the agent spoke of in its last heartbeat and choird has not acknowledged; null before the first. */
  lag_revs: Schema.NullOr(Schema.Natural),
  /** Since its last sign of life. */
  heartbeat_age_ms: Schema.NullOr(Schema.Natural),
  /** Its crashes in the breaker's window, and how many stop it (R9). */
  crashes: Schema.Natural,
  crashes_max: Schema.Natural,
  tokens: Spent,
  cost_usd: SpentUsd
})
export type AgentHealth = typeof AgentHealth.Type

/** A row of `agent list`. */
export const AgentSummary = Schema.Struct({
  agent_id: AgentId,
  status: AgentStatus,
  session_id: Schema.NullOr(SessionId),
  image_version: Schema.NullOr(Schema.String),
  uptime_ms: Schema.Natural,
  config_version: Schema.Natural,
  /** The newest version, there only while a running agent has an older one (R58). */
  config_version_latest: Schema.optionalKey(Schema.Natural),
  /** There while the agent runs and the database answers. */
  health: Schema.optionalKey(AgentHealth)
})
export type AgentSummary = typeof AgentSummary.Type

/** A named model, voice provider or voice profile of config.json; the model of a profile is its voice. */
export const ModelSummary = Schema.Struct({
  name: ResourceName,
  type: Schema.Literals(["llm", "tts", "voice"]),
  provider: Schema.String,
  model: Schema.String,
  /** Of a model: the agents whose default it is, the models that answer when it cannot, and its price in USD per million tokens. */
  default_of: Schema.optionalKey(Schema.Array(AgentId)),
  fallback: Schema.optionalKey(Schema.Array(ResourceName)),
  price: Schema.optionalKey(Schema.Struct({ input: Schema.Finite, output: Schema.Finite }))
})
export type ModelSummary = typeof ModelSummary.Type
