/** The runs of an agent's skills and jobs over all its sessions, as the rows that follow from its events tell them. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import type { JobRun, SkillRun } from "#schema/RunsApi.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"

/** Runs of one answer. */
const RUNS_SHOWN_MAX = 1000

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`
const TIMES = `to_char(started_at AT TIME ZONE 'UTC', ${ISO}) AS started_at, to_char(ended_at AT TIME ZONE 'UTC', ${ISO}) AS ended_at`
const SPENT = "tokens::double precision AS tokens, cost_nano_usd / 1e9::double precision AS cost_usd"

/** Reads runs. */
export class Runs extends Context.Service<
  Runs,
  {
    /** The newest runs of all skills, or of one, at most RUNS_SHOWN_MAX. */
    skills(
      agent_id: AgentId,
      options: { readonly skill?: string; readonly last: number }
    ): Effect.Effect<ReadonlyArray<SkillRun>, DatabaseAway>
    /** The newest runs of jobs, at most RUNS_SHOWN_MAX. */
    jobs(agent_id: AgentId, options: { readonly last: number }): Effect.Effect<ReadonlyArray<JobRun>, DatabaseAway>
  }
>()("choir/choird/sessions/Runs") {
  static readonly layer = Layer.effect(
    Runs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return Runs.of({
        skills: Effect.fn("Runs.skills")(function* (agent_id, { last, skill }) {
          return yield* sql<SkillRun>`SELECT session_id, started_rev, lane, skill, state, ${sql.literal(TIMES)}, outcome,
              steps, ${sql.literal(SPENT)}
            FROM choir_control.skill_runs WHERE agent_id = ${agent_id} AND ${skill === undefined ? sql`true` : sql`skill = ${skill}`}
            ORDER BY started_at DESC, session_id DESC, started_rev DESC LIMIT ${Math.min(last, RUNS_SHOWN_MAX)}`
        }, onDatabase),
        jobs: Effect.fn("Runs.jobs")(function* (agent_id, { last }) {
          return yield* sql<JobRun>`SELECT session_id, started_rev, job_id, job_name, skill, ${sql.literal(TIMES)}, outcome,
              steps, ${sql.literal(SPENT)}
            FROM choir_control.job_runs WHERE agent_id = ${agent_id}
            ORDER BY started_at DESC, session_id DESC, started_rev DESC LIMIT ${Math.min(last, RUNS_SHOWN_MAX)}`
        }, onDatabase)
      })
    })
  )
}
