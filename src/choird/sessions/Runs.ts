/** The runs of an agent's skills and jobs over all its sessions, as the rows that follow from its events tell them. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import type { AgentType, ProfileHistories, ProfileHistory } from "#schema/JobProfile.ts"
import type { JobRun, SkillRun } from "#schema/RunsApi.ts"
import { PROFILES_MAX } from "#src/shared/image/skillFile.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { daysBefore } from "#src/shared/days.ts"

/** Runs of one answer. */
const RUNS_SHOWN_MAX = 1000

/** Days of runs that the choice of a job's type looks at. */
const HISTORY_DAYS = 90
/** Days for which `status` reports a job that ended without an account of its work. */
const ORPHANS_TOLD_DAYS = 7

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`
const TIMES = `to_char(started_at AT TIME ZONE 'UTC', ${ISO}) AS started_at, to_char(ended_at AT TIME ZONE 'UTC', ${ISO}) AS ended_at`
const JOB_TIMES = `${TIMES}, to_char(requested_at AT TIME ZONE 'UTC', ${ISO}) AS requested_at, to_char(worked_at AT TIME ZONE 'UTC', ${ISO}) AS worked_at`
/** The kind of the skill of a run, and the verdict on its result. */
const OF_SKILL = "execution_class, tier, trigger, retries, confidence, judge_score, verdict"
const LIFECYCLE = `CASE WHEN pending THEN 'PENDING' WHEN outcome = 'completed' THEN 'TERMINATED' WHEN outcome IS NOT NULL THEN 'FAILED'
  WHEN worked_at IS NULL THEN 'INITIALIZING' WHEN asks THEN 'READY' ELSE 'BUSY' END`
const SPENT = "tokens::double precision AS tokens, cost_nano_usd / 1e9::double precision AS cost_usd"

/** Lists the runs of an agent's skills and jobs, and counts how the jobs of each profile ended. */
export class Runs extends Context.Service<
  Runs,
  {
    /** The newest runs of all skills, or of one, at most RUNS_SHOWN_MAX. */
    skills(
      agent_id: AgentId,
      options: { readonly skill?: string; readonly last: number }
    ): Effect.Effect<ReadonlyArray<SkillRun>, DatabaseAway>
    /** The newest runs of jobs, at most RUNS_SHOWN_MAX. */
    jobs(
      agent_id: AgentId,
      options: { readonly last: number; readonly orphans?: boolean }
    ): Effect.Effect<ReadonlyArray<JobRun>, DatabaseAway>
    /** How the agent's jobs of each type ended within HISTORY_DAYS. */
    history(agent_id: AgentId): Effect.Effect<ProfileHistories, DatabaseAway>
    /** Jobs of the last ORPHANS_TOLD_DAYS that ended without the account that their profile wants, by agent. */
    readonly orphans: Effect.Effect<ReadonlyMap<AgentId, number>, DatabaseAway>
  }
>()("choir/choird/Runs") {
  static readonly layer = Layer.effect(
    Runs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return Runs.of({
        skills: Effect.fn("Runs.skills")(function* (agent_id, { last, skill }) {
          return yield* sql<SkillRun>`SELECT session_id, started_rev, lane, skill, state, ${sql.literal(TIMES)}, outcome,
              ${sql.literal(OF_SKILL)}, version, steps, ${sql.literal(SPENT)}
            FROM choir_control.skill_runs WHERE agent_id = ${agent_id} AND ${skill === undefined ? sql`true` : sql`skill = ${skill}`}
            ORDER BY started_at DESC, session_id DESC, started_rev DESC LIMIT ${Math.min(last, RUNS_SHOWN_MAX)}`
        }, onDatabase),
        jobs: Effect.fn("Runs.jobs")(function* (agent_id, { last, orphans = false }) {
          return yield* sql<JobRun>`SELECT session_id, started_rev, job_id, job_name, agent_type, pool, skill, branch,
              ${sql.literal(JOB_TIMES)}, outcome, writeback, orphan, steps, ${sql.literal(SPENT)},
              ${sql.literal(LIFECYCLE)} AS lifecycle, s.*
            FROM choir_control.job_runs AS j LEFT JOIN LATERAL (
              SELECT ${sql.literal(OF_SKILL)} FROM choir_control.skill_runs AS r
              WHERE r.session_id = j.session_id AND r.lane = 'core:' || j.job_name AND r.started_rev > j.started_rev
                AND (j.ended_rev IS NULL OR r.started_rev < j.ended_rev)
              ORDER BY r.started_rev DESC LIMIT 1
            ) AS s ON true
            WHERE agent_id = ${agent_id} AND (orphan OR NOT ${orphans})
            ORDER BY started_at DESC, session_id DESC, started_rev DESC LIMIT ${Math.min(last, RUNS_SHOWN_MAX)}`
        }, onDatabase),
        history: Effect.fn("Runs.history")(function* (agent_id) {
          const since = daysBefore(yield* Clock.currentTimeMillis, HISTORY_DAYS)
          const rows = yield* sql<ProfileHistory & { readonly agent_type: AgentType }>`SELECT agent_type,
              avg(CASE WHEN outcome = 'completed' AND NOT orphan THEN 1.0 ELSE 0.0 END)::double precision AS success_rate,
              least(greatest(0, avg(extract(epoch FROM ended_at - started_at) * 1000)), 1e12)::bigint::double precision AS avg_duration_ms,
              count(*)::int AS total_runs
            FROM choir_control.job_runs
            WHERE agent_id = ${agent_id} AND agent_type IS NOT NULL AND outcome IS NOT NULL AND started_at > ${since}::timestamptz
            GROUP BY agent_type ORDER BY count(*) DESC, agent_type LIMIT ${PROFILES_MAX}`
          return Object.fromEntries(rows.map(({ agent_type, ...history }) => [agent_type, history]))
        }, onDatabase),
        orphans: Effect.gen(function* () {
          const since = daysBefore(yield* Clock.currentTimeMillis, ORPHANS_TOLD_DAYS)
          const rows = yield* sql<{
            readonly agent_id: AgentId
            readonly count: number
          }>`SELECT agent_id, count(*)::int AS count
            FROM choir_control.job_runs WHERE orphan AND ended_at > ${since}::timestamptz GROUP BY agent_id`
          return new Map(rows.map(({ agent_id, count }) => [agent_id, count]))
        }).pipe(onDatabase)
      })
    })
  )
}
