/** The runs of skills and jobs of an agent over all its sessions, as an operator reads them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { CoreOutcome } from "./Event.ts"
import { JobProfile, ProfileHistory } from "./JobProfile.ts"
import { ExecutionClass } from "./SkillContract.ts"
import { SkillName } from "./Skill.ts"
import { SkillTier } from "./SkillRegistryEntry.ts"
import { Writeback } from "./Writeback.ts"
import { AgentId, CallId, JobName, LaneId, Rev, SessionId } from "./Ids.ts"

/** The kind of a skill when it ran, and the newest that is known of its result; null where nothing says it. */
const ofSkill = {
  execution_class: Schema.NullOr(ExecutionClass),
  tier: Schema.NullOr(SkillTier),
  /** The trigger that began it; `person` for one that was ordered. */
  trigger: Schema.NullOr(Schema.String),
  /** Results that were sent back. */
  retries: Schema.NullOr(Schema.Natural),
  confidence: Schema.NullOr(Schema.Finite),
  judge_score: Schema.NullOr(Schema.Finite),
  /** Whether the result that was judged last was taken. */
  verdict: Schema.NullOr(Schema.Literals(["passed", "failed"]))
} as const

/** A run of a skill; `outcome` and the end are null while it is at work. */
export const SkillRun = Schema.Struct({
  session_id: SessionId,
  started_rev: Rev,
  lane: LaneId,
  skill: Schema.String,
  version: Schema.NullOr(Schema.String),
  ...ofSkill,
  state: Schema.String,
  started_at: Schema.String,
  ended_at: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Schema.Literals(["completed", "failed", "cancelled"])),
  steps: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.Finite
})
export type SkillRun = typeof SkillRun.Type

const JobLifecycle = Schema.Literals(["PENDING", "INITIALIZING", "READY", "BUSY", "TERMINATED", "FAILED"])

/** A run of a job; a resumed job is a run of its own. */
export const JobRun = Schema.Struct({
  session_id: SessionId,
  started_rev: Rev,
  job_id: CallId,
  job_name: JobName,
  agent_type: Schema.NullOr(Schema.String),
  pool: Schema.NullOr(Schema.String),
  skill: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** Of the newest skill that it ran. */
  ...ofSkill,
  /** When edge asked for it; null for one that a person ordered. */
  requested_at: Schema.NullOr(Schema.String),
  /** When it began; while it is PENDING, when it was asked for. */
  started_at: Schema.String,
  /** Its first model output. */
  worked_at: Schema.NullOr(Schema.String),
  ended_at: Schema.NullOr(Schema.String),
  lifecycle: JobLifecycle,
  outcome: Schema.NullOr(CoreOutcome),
  /** How it said that the task stands; null where it said nothing. */
  writeback: Schema.NullOr(Schema.Struct({ status: Writeback.fields.status, progress: Schema.Natural })),
  /** Its profile wanted an account of its work, and it gave none. */
  orphan: Schema.Boolean,
  steps: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.Finite
})
export type JobRun = typeof JobRun.Type

/** A profile of an agent's newest image, with how its jobs ended; null while none has. */
export const ProfileDetail = Schema.Struct({ profile: JobProfile, history: Schema.NullOr(ProfileHistory) })
export type ProfileDetail = typeof ProfileDetail.Type

const agent = { id: AgentId } as const
const last = Schema.optionalKey(Schema.FiniteFromString)

export const RunsApi = HttpApiGroup.make("runs").add(
  HttpApiEndpoint.get("skills", "/agents/:id/skill-runs", {
    params: agent,
    query: { skill: Schema.optionalKey(SkillName), last },
    success: Schema.Array(SkillRun),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("jobs", "/agents/:id/job-runs", {
    params: agent,
    query: { last, orphans: Schema.optionalKey(Schema.Literals(["true", "false"])) },
    success: Schema.Array(JobRun),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("profiles", "/agents/:id/profiles", {
    params: agent,
    success: Schema.Array(ProfileDetail),
    error: ApiErrors
  })
)
