/** The rows of runs, written in the transaction of the events that tell of them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { type JobChange, type RunChanges, runChanges, type SkillChange } from "./runChanges.ts"

/** The session that runs belong to. */
interface Origin {
  readonly session_id: SessionId
  readonly agent_id: AgentId
}

const skillRow = ({ begun, ended, judged, moved, ...change }: SkillChange) => ({
  ...change,
  ...begun,
  ...moved,
  ...judged,
  ended_rev: ended?.rev,
  ended_at: ended?.at,
  outcome: ended?.outcome
})

const SKILL_COLUMNS = `started_rev int, lane text, skill text, started_at timestamptz, state text, steps int, tokens bigint,
  cost_nano_usd bigint, ended_rev int, ended_at timestamptz, outcome text, version text, execution_class text, tier text, trigger text,
  retries int, confidence double precision, judge_score double precision, verdict text`

/** The sum from which on a run counts no more: what an agent claims in one heartbeat is no more either, and both together fit a bigint. */
const SUM_MAX = String(Number.MAX_SAFE_INTEGER)

/** A run that began before there were rows is in none. */
const writeSkills = Effect.fnUntraced(function* ({ agent_id, session_id }: Origin, { skills }: RunChanges) {
  if (skills.size === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = JSON.stringify([...skills.values()].map(skillRow))
  yield* sql`WITH changed AS (
      SELECT * FROM jsonb_to_recordset(${rows}::text::jsonb) AS c (${sql.literal(SKILL_COLUMNS)})
    ), updated AS (
      UPDATE choir_control.skill_runs AS r SET state = coalesce(c.state, r.state), steps = coalesce(c.steps, r.steps),
        tokens = least(r.tokens, ${SUM_MAX}::text::bigint) + c.tokens,
        cost_nano_usd = greatest(least(r.cost_nano_usd, ${SUM_MAX}::text::bigint), -(${SUM_MAX}::text::bigint)) + c.cost_nano_usd,
        ended_rev = c.ended_rev, ended_at = c.ended_at, outcome = c.outcome, retries = r.retries + c.retries,
        confidence = coalesce(c.confidence, r.confidence), judge_score = coalesce(c.judge_score, r.judge_score),
        verdict = coalesce(c.verdict, r.verdict)
      FROM changed AS c WHERE r.session_id = ${session_id} AND r.started_rev = c.started_rev AND c.skill IS NULL
    )
    INSERT INTO choir_control.skill_runs (session_id, agent_id, started_rev, lane, skill, started_at, state, steps,
      tokens, cost_nano_usd, ended_rev, ended_at, outcome, version, execution_class, tier, trigger, retries, confidence, judge_score, verdict)
    SELECT ${session_id}, ${agent_id}, started_rev, lane, skill, started_at, state, steps, tokens, cost_nano_usd, ended_rev, ended_at, outcome,
      version, execution_class, tier, trigger, retries, confidence, judge_score, verdict
    FROM changed WHERE skill IS NOT NULL`
})

const NO_WORK = { steps: 0, tokens: 0, cost_nano_usd: 0, orphan: false, writeback: null }

/** The row of a job, or of a request for one until the job begins. */
const jobRow = ({ asks, begun, ended, job_id, requested, worked_at }: JobChange) => {
  const { at: started_at, rev: started_rev, ...names } = begun ?? requested ?? { at: undefined, rev: undefined }
  const { at: ended_at, rev: ended_rev, ...work } = ended ?? { ...NO_WORK, at: undefined, rev: undefined }
  const pending = begun === undefined && requested !== undefined
  return {
    job_id,
    started_at,
    started_rev,
    ...names,
    pending,
    requested_at: requested?.at,
    worked_at,
    asks: asks ?? (started_rev === undefined ? undefined : false),
    ended_at,
    ended_rev,
    ...work
  }
}

/** The columns of a job's row in the order of their types, and those that its end changes. */
const JOB_COLUMNS = {
  job_id: "text",
  started_rev: "int",
  job_name: "text",
  agent_type: "text",
  pool: "text",
  skill: "text",
  branch: "text",
  worktree: "text",
  resumes: "text",
  started_at: "timestamptz",
  pending: "boolean",
  requested_at: "timestamptz",
  worked_at: "timestamptz",
  asks: "boolean",
  ended_rev: "int",
  ended_at: "timestamptz",
  outcome: "text",
  steps: "int",
  tokens: "bigint",
  cost_nano_usd: "bigint",
  writeback: "jsonb",
  orphan: "boolean"
} as const
const JOB_NAMES = Object.keys(JOB_COLUMNS)
const ENDED_NAMES = JOB_NAMES.slice(JOB_NAMES.indexOf("ended_rev"))

const setOf = (names: ReadonlyArray<string>, from: string) =>
  names.map((name) => `${name} = ${from}.${name}`).join(", ")

/** A request keeps its time when its job begins. */
const REQUESTED = `requested_at = coalesce(excluded.requested_at, CASE WHEN job_runs.pending THEN job_runs.requested_at END)`

/** Requests of an earlier batch that came to nothing. */
const dropRefused = Effect.fnUntraced(function* (session_id: SessionId, jobs: ReadonlyArray<JobChange>) {
  const refused = jobs.filter(({ isRefused }) => isRefused === true).map(({ job_id }) => job_id)
  if (refused.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.job_runs WHERE session_id = ${session_id} AND pending AND ${sql.in("job_id", refused)}`
})

/** A job id that an agent uses twice is a new run of that name: its row gives way. */
const writeJobs = Effect.fnUntraced(function* ({ agent_id, session_id }: Origin, { jobs }: RunChanges) {
  const changes = [...jobs.values()]
  yield* dropRefused(session_id, changes)
  const kept = changes.filter(({ isRefused }) => isRefused !== true)
  if (kept.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = JSON.stringify(kept.map(jobRow))
  const typed = sql.literal(
    Object.entries(JOB_COLUMNS)
      .map(([name, type]) => `${name} ${type}`)
      .join(", ")
  )
  const names = sql.literal(JOB_NAMES.join(", "))
  const replaced = JOB_NAMES.slice(1).filter((name) => name !== "requested_at")
  yield* sql`WITH changed AS (
      SELECT * FROM jsonb_to_recordset(${rows}::text::jsonb) AS c (${typed})
    ), updated AS (
      UPDATE choir_control.job_runs AS r
      SET worked_at = coalesce(r.worked_at, c.worked_at), asks = coalesce(c.asks, r.asks), ${sql.literal(setOf(ENDED_NAMES, "c"))}
      FROM changed AS c WHERE r.session_id = ${session_id} AND r.job_id = c.job_id AND c.job_name IS NULL
    )
    INSERT INTO choir_control.job_runs (session_id, agent_id, ${names})
    SELECT ${session_id}, ${agent_id}, ${names} FROM changed WHERE job_name IS NOT NULL
    ON CONFLICT (session_id, job_id) DO UPDATE SET audited = false, ${sql.literal(`${REQUESTED}, ${setOf(replaced, "excluded")}`)}`
})

/** Writes what events after a state tell of runs, within their transaction. */
export const applyRuns = Effect.fnUntraced(function* (
  origin: Origin,
  before: SessionState,
  events: ReadonlyArray<ChoirEvent>
) {
  const changes = runChanges(before, events)
  yield* writeSkills(origin, changes)
  yield* writeJobs(origin, changes)
})
