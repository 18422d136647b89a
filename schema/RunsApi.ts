/** The runs of skills and jobs of an agent over all its sessions, as an operator reads them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { CoreOutcome } from "./Event.ts"
import { AgentId, CallId, JobName, LaneId, Rev, SessionId } from "./Ids.ts"

/** A run of a skill; `outcome` and the end are null while it is at work. */
export const SkillRun = Schema.Struct({
  session_id: SessionId,
  started_rev: Rev,
  lane: LaneId,
  skill: Schema.String,
  state: Schema.String,
  started_at: Schema.String,
  ended_at: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Schema.Literals(["completed", "failed", "cancelled"])),
  steps: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.Finite
})
export type SkillRun = typeof SkillRun.Type

/** A run of a job; a resumed job is a run of its own. */
export const JobRun = Schema.Struct({
  session_id: SessionId,
  started_rev: Rev,
  job_id: CallId,
  job_name: JobName,
  skill: Schema.NullOr(Schema.String),
  started_at: Schema.String,
  ended_at: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(CoreOutcome),
  steps: Schema.Natural,
  tokens: Schema.Natural,
  cost_usd: Schema.Finite
})
export type JobRun = typeof JobRun.Type

const agent = { id: AgentId } as const
const last = Schema.optionalKey(Schema.FiniteFromString)

export const RunsApi = HttpApiGroup.make("runs").add(
  HttpApiEndpoint.get("skills", "/agents/:id/skill-runs", {
    params: agent,
    query: { skill: Schema.optionalKey(Schema.String), last },
    success: Schema.Array(SkillRun),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("jobs", "/agents/:id/job-runs", {
    params: agent,
    query: { last },
    success: Schema.Array(JobRun),
    error: ApiErrors
  })
)
