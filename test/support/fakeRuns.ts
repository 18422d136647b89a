/** Runs of skills and jobs as the fake choird answers for them. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CallId, JobName, LaneId, SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { JobRun, SkillRun } from "#schema/RunsApi.ts"

const session_id = SessionId.make("0k8v3w9m2p1n4q7r")
const times = { started_at: "2026-01-01T00:00:00.000Z", ended_at: "2026-01-01T00:01:30.000Z" }
const spent = { steps: 4, tokens: 1200, cost_usd: 0.0025 }

export const skillRunRows: ReadonlyArray<SkillRun> = [
  {
    session_id,
    started_rev: 7,
    lane: LaneId.make("edge"),
    skill: "tidy",
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
    state: "look",
    ...times,
    ended_at: null,
    outcome: null,
    ...spent
  }
]
export const jobRunRows: ReadonlyArray<JobRun> = [
  {
    session_id,
    started_rev: 9,
    job_id: CallId.make("s-1-8-0"),
    job_name: JobName.make("refactor-auth"),
    skill: null,
    ...times,
    outcome: "error",
    ...spent
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
          })
      })
    )
  )
