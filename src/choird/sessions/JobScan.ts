/**
 * Looks for jobs that failed or ended without the work summary that their profile requires, and audits each once, summed with others of
 * its agent and outcome in the same minute: an agent can end jobs as fast as it likes. It reads rows and not the events as they pass, so
 * that none is missed over a crash; the mark comes after the audit row, so that a crash between repeats the row.
 */
import { Effect, Layer, Schedule, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { CoreOutcome } from "#schema/Event.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { EventStore } from "./EventStore.ts"

/** Between two scans where no event says that a job has ended. */
const JOB_SCAN_MS = 60_000
/** Jobs of one scan; the next one takes those behind them. */
const JOB_SCAN_ROWS_MAX = 100

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
  const audit = yield* Audit
  const jobs = yield* sql<EndedJob>`SELECT session_id, agent_id, job_id, job_name, agent_type, outcome, orphan
    FROM choir_control.job_runs
    WHERE NOT audited AND outcome IS NOT NULL AND (orphan OR outcome <> 'completed')
    ORDER BY ended_at LIMIT ${JOB_SCAN_ROWS_MAX}`
  for (const { agent_id, orphan, session_id, ...job } of jobs) {
    const entry = { who: `agent:${agent_id}`, session_id, agent_id, detail: { ...job }, repeats: job.outcome }
    if (job.outcome !== "completed") yield* audit.record({ ...entry, action: "job.failed" })
    if (orphan) {
      yield* audit.record({ ...entry, action: "job.orphan" })
      yield* count("orphans", { agent: agent_id })
      yield* Effect.logWarning(`the job ${job.job_name} ended without the work summary that its profile requires`).pipe(
        Effect.annotateLogs({ agent_id, session_id })
      )
    }
    yield* sql`UPDATE choir_control.job_runs SET audited = true WHERE session_id = ${session_id} AND job_id = ${job.job_id}`
  }
  return jobs.length
})

/** Scans at start, after each job that ends, and every JOB_SCAN_MS. */
export const layerJobScan = Layer.effectDiscard(
  Effect.gen(function* () {
    const context = yield* Effect.context<Audit | SqlClient.SqlClient>()
    const events = yield* EventStore
    const onDatabase = yield* useDatabase
    const all = scanJobs.pipe(
      Effect.repeat({ while: (jobs) => jobs === JOB_SCAN_ROWS_MAX }),
      Effect.provideContext(context)
    )
    const ends = events.appended.pipe(
      Stream.filter(({ events }) => events.some(({ event_type }) => event_type === "CoreStopped")),
      Stream.map(() => 0)
    )
    const ticks = Stream.concat(Stream.make(0), Stream.fromSchedule(Schedule.spaced(JOB_SCAN_MS)))
    yield* Stream.merge(ticks, ends).pipe(
      Stream.runForEach(() => Effect.ignore(onDatabase(all))),
      Effect.forkScoped
    )
  })
)
