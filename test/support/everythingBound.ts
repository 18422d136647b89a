/** An agent with everything that brings tools of its own, or further parameters of a tool: services, the browser, job types and branches. */
import { Effect, Layer, Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { ResourceName, SecretName } from "#schema/Ids.ts"
import { JobProfile } from "#schema/JobProfile.ts"
import { Tts, VoiceProfile } from "#schema/Voice.ts"
import { Worktrees } from "#src/agent/git/Worktrees.ts"
import { ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"

const secret = SecretName.make("s")

/** The configuration of such an agent. */
export const EVERYTHING_BOUND: Partial<AgentConfig> = {
  email: Schema.decodeSync(EmailAccount)({
    smtp_host: "mail",
    smtp_port: 465,
    imap_host: "mail",
    imap_port: 993,
    secret
  }),
  notion: { secret },
  search: { secret },
  voice: {
    tts: Schema.decodeSync(Tts)({ provider: "openai", model_id: "m", endpoint: "https://voice.test/v1" }),
    profile: Schema.decodeSync(VoiceProfile)({ tts: ResourceName.make("speaker"), voice_id: "v" })
  },
  web: "browse"
}

/** Two types of jobs: the one that docs/agent.md shows, and one that writes. */
const PROFILES = [
  { agent_type: "scout", description: "Reads and reports; changes nothing.", pool: "research" },
  { agent_type: "builder", description: "Writes and tests code.", pool: "implementation" }
].map((profile) => Schema.decodeUnknownSync(JobProfile)(profile))

/** The workspace is a repository, so that jobs are offered a branch. */
export const layerBranches = Layer.effect(
  Worktrees,
  Effect.map(Worktrees, (none) => ({ ...none, offered: true }))
)

export const layerEverythingBound = Layer.merge(
  layerBranches,
  Layer.succeed(ProfileRegistry, new Map(PROFILES.map((profile) => [profile.agent_type, profile])))
)
