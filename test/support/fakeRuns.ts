/** Runs of skills and jobs as the fake choird answers for them. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CallId, JobName, LaneId, SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { JobProfile } from "#schema/JobProfile.ts"
import type { JobRun, ProfileDetail, SkillRun } from "#schema/RunsApi.ts"

const session_id = SessionId.make("0k8v3w9m2p1n4q7r")
const times = { started_at: "2026-01-01T00:00:00.000Z", ended_at: "2026-01-01T00:01:30.000Z" }
const none = {
  execution_class: null,
  tier: null,
  trigger: null,
  retries: null,
  confidence: null,
  judge_score: null,
  verdict: null
}
const judged = {
  execution_class: "probabilistic",
  tier: "task",
  trigger: "keyword: tidy",
  retries: 1,
  confidence: 0.6,
  judge_score: 0.9,
  verdict: "passed"
} as const
const spent = { steps: 4, tokens: 1200, cost_usd: 0.0025 }

export const skillRunRows: ReadonlyArray<SkillRun> = [
  {
    session_id,
    started_rev: 7,
    lane: LaneId.make("edge"),
    skill: "tidy",
    version: "1.0.0",
    ...judged,
    state: "done",
    ...times,
    outcome: "completed",
    ...spent
  },
  {
    session_id,
    started_rev: 3,
    lane: LaneId.make("core:a"),
    skill: "tidy",
    version: null,
    ...none,
    state: "look",
    ...times,
    ended_at: null,
    outcome: null,
    ...spent
  }
]
const jobRun: JobRun = {
  session_id,
  started_rev: 9,
  job_id: CallId.make("s-1-8-0"),
  job_name: JobName.make("refactor-auth"),
  agent_type: "coder",
  pool: "implementation",
  skill: null,
  branch: null,
  ...none,
  requested_at: times.started_at,
  worked_at: null,
  ...times,
  lifecycle: "FAILED",
  outcome: "error",
  writeback: null,
  orphan: true,
  ...spent
}
export const jobRunRows: ReadonlyArray<JobRun> = [
  jobRun,
  { ...jobRun, job_name: JobName.make("dig"), outcome: "cancelled", orphan: false },
  { ...jobRun, job_name: JobName.make("sow"), ended_at: null, lifecycle: "BUSY", outcome: null, orphan: false }
]

const profileRows: ReadonlyArray<ProfileDetail> = [
  {
    profile: Schema.decodeUnknownSync(JobProfile)({
      agent_type: "scout",
      description: "Reads and reports.",
      pool: "research",
      permissions: { tools: ["choir.fs.read"] },
      limits: { max_concurrent_tasks: 3, token_budget: 50_000 }
    }),
    history: { success_rate: 0.75, avg_duration_ms: 90_000, total_runs: 8 }
  }
]

/** @param note is told each call. */
export const fakeRuns = (note: (name: string, id: string) => void) =>
  HttpApiBuilder.group(OperatorApi, "runs", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        skills: ({ params, query }) =>
          Effect.sync(() => {
            note(`skill runs ${JSON.stringify(query)}`, params.id)
            return skillRunRows
          }),
        jobs: ({ params, query }) =>
          Effect.sync(() => {
            note(`job runs ${JSON.stringify(query)}`, params.id)
            return jobRunRows
          }),
        profiles: ({ params }) =>
          Effect.sync(() => {
            note("profiles", params.id)
            return profileRows
          })
      })
    )
  )
