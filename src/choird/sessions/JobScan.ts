/**
 * Looks for jobs that failed or ended without the work summary that their profile requires, and audits them: those of one scan that are of
 * one session and outcome have a row together, since an agent can end jobs as fast as it likes. It reads rows and not the events as they
 * pass, so that none is missed over a crash; the mark comes after the audit row, so that a crash between repeats the row.
 */
import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { CoreOutcome } from "#schema/Event.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { plural } from "#src/shared/text/counts.ts"

/** Between two scans. Were there one for each job that ends, an agent could have a row for each. */
const JOB_SCAN_MS = 60_000
/** Jobs of one scan; the next one, which follows at once, takes those behind them. */
const JOB_SCAN_ROWS_MAX = 1000
/** Ids of jobs that one audit row names. */
const JOB_IDS_NAMED_MAX = 20

interface EndedJob {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly job_id: string
  readonly job_name: string
  readonly agent_type: string | null
  readonly outcome: CoreOutcome
  readonly orphan: boolean
}

/** Audits the jobs that ended since the last scan; answers how many. */
export const scanJobs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const jobs = yield* sql<EndedJob>`SELECT session_id, agent_id, job_id, job_name, agent_type, outcome, orphan
    FROM choir_control.job_runs
    WHERE NOT audited AND outcome IS NOT NULL AND (orphan OR outcome <> 'completed')
    ORDER BY ended_at LIMIT ${JOB_SCAN_ROWS_MAX}`
  const equal = Map.groupBy(jobs, ({ outcome, session_id }) => `${session_id} ${outcome}`)
  for (const [first, ...others] of equal.values()) if (first !== undefined) yield* auditEqual([first, ...others])
  return jobs.length
})

/** Audits jobs of one session and outcome, and marks them. */
const auditEqual = Effect.fnUntraced(function* (jobs: readonly [EndedJob, ...ReadonlyArray<EndedJob>]) {
  const sql = yield* SqlClient.SqlClient
  const [{ agent_id, outcome, session_id }] = jobs
  const orphans = jobs.filter(({ orphan }) => orphan)
  if (outcome !== "completed") yield* auditSum("job.failed", jobs)
  if (orphans.length > 0) {
    yield* auditSum("job.orphan", orphans)
    yield* count("orphans", { agent: agent_id }, orphans.length)
    const names = [...new Set(orphans.map(({ job_name }) => job_name))].slice(0, JOB_IDS_NAMED_MAX)
    yield* Effect.logWarning(
      `${plural(orphans.length, "job")} ended without the work summary that the profile requires: ${names.join(", ")}`
    ).pipe(Effect.annotateLogs({ agent_id, session_id }))
  }
  const ids = jobs.map(({ job_id }) => job_id)
  yield* sql`UPDATE choir_control.job_runs SET audited = true WHERE session_id = ${session_id} AND job_id = ANY(${ids}::text[])`
})

/** One row, with the newest of the jobs in full and the ids of some others. */
const auditSum = Effect.fnUntraced(function* (action: "job.failed" | "job.orphan", jobs: ReadonlyArray<EndedJob>) {
  const newest = jobs.at(-1)
  if (newest === undefined) return
  const { agent_id, orphan: _, session_id, ...job } = newest
  const others = jobs.slice(-JOB_IDS_NAMED_MAX, -1).map(({ job_id }) => job_id)
  const detail = { ...job, ...(others.length === 0 ? {} : { others }) }
  yield* (yield* Audit).recordSum({ who: `agent:${agent_id}`, action, session_id, agent_id, detail }, jobs.length)
})

/** Scans at start and every JOB_SCAN_MS. */
export const layerJobScan = Layer.effectDiscard(
  Effect.gen(function* () {
    const onDatabase = yield* useDatabase
    yield* onDatabase(Effect.repeat(scanJobs, { while: (jobs) => jobs === JOB_SCAN_ROWS_MAX })).pipe(
      // A defect at one look must not end the others.
      Effect.catchCause((cause) => Effect.logWarning("looking for ended jobs failed; choird tries again later", cause)),
      Effect.repeat(Schedule.spaced(JOB_SCAN_MS)),
      restarted("the look for ended jobs"),
      Effect.forkScoped
    )
  })
)
