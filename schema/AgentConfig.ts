/** The configuration as an agent receives it. */
import { Schema } from "effect"
import { Capabilities } from "./Capability.ts"
import {
  AgentWeb,
  ApprovalsConfig,
  Budgets,
  IntervalMs,
  JobsConfig,
  MemoryConfig,
  Model,
  Notion,
  Repo,
  Search
} from "./Config.ts"
import { EmailAccount } from "./EmailAccount.ts"
import { GitIdentity } from "./GitIdentity.ts"
import { ResourceName } from "./Ids.ts"
import { ProfileHistories } from "./JobProfile.ts"
import { Tts, VoiceProfile } from "./Voice.ts"
import { withDefault } from "./withDefault.ts"
import { WayOut } from "./WayOut.ts"
import { WorkspaceLabel } from "./WorkspaceLabel.ts"

/** The part of the configuration that an agent receives: its own, never another agent's, never a secret's value. */
export const AgentConfig = Schema.Struct({
  llm: ResourceName,
  core_llm: ResourceName,
  /** The bound models and whatever their `fallback` names. */
  models: Schema.Record(ResourceName, Model),
  git_identity: Schema.optionalKey(GitIdentity),
  search: Schema.optionalKey(Search),
  notion: Schema.optionalKey(Notion),
  email: Schema.optionalKey(EmailAccount),
  /** The voice in which it speaks. */
  voice: Schema.optionalKey(Schema.Struct({ tts: Tts, profile: VoiceProfile })),
  /** The agent's own repository, to which it pushes what it proposes. */
  repo: Schema.optionalKey(Repo),
  budgets: Budgets,
  memory: MemoryConfig,
  jobs: withDefault(JobsConfig, {}),
  /** How jobs of each type ended in this agent's sessions of late. */
  profiles: Schema.optionalKey(ProfileHistories),
  approvals: ApprovalsConfig,
  /** The effects that the agent's skills may have; absent are GRANTS_DEFAULT. */
  grants: Schema.optionalKey(Capabilities),
  heartbeat_interval_ms: IntervalMs,
  /** How long choird hears nothing before the agent counts as crashed. */
  crash_detection_threshold_ms: Schema.optionalKey(IntervalMs),
  rate_limit_retry_ms: IntervalMs,
  /** The addresses of choird's host, the only ones beside loopback that get a secret over http. */
  own_addresses: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The origin of its workspace's files, as known from before this run. */
  workspace_label: Schema.optionalKey(WorkspaceLabel),
  /** Private authorities and proxies of choird's host. */
  way_out: Schema.optionalKey(WayOut),
  /** The name of the person at each of its DMs; absent where it talks with one person alone. */
  writers: Schema.optionalKey(Schema.Record(ResourceName, ResourceName)),
  /** The tools of the web that choird has for it; absent: none. */
  web: Schema.optionalKey(AgentWeb)
})
export type AgentConfig = typeof AgentConfig.Type
