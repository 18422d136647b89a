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

const skillRow = ({ begun, ended, moved, ...change }: SkillChange) => ({
  ...change,
  ...begun,
  ...moved,
  ended_rev: ended?.rev,
  ended_at: ended?.at,
  outcome: ended?.outcome
})

const SKILL_COLUMNS = `started_rev int, lane text, skill text, started_at timestamptz, state text, steps int, tokens bigint,
  cost_nano_usd bigint, ended_rev int, ended_at timestamptz, outcome text`

/** A run that began before there were rows is in none. */
const writeSkills = Effect.fnUntraced(function* ({ agent_id, session_id }: Origin, { skills }: RunChanges) {
  if (skills.size === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = JSON.stringify([...skills.values()].map(skillRow))
  yield* sql`WITH changed AS (
      SELECT * FROM jsonb_to_recordset(${rows}::text::jsonb) AS c (${sql.literal(SKILL_COLUMNS)})
    ), updated AS (
      UPDATE choir_control.skill_runs AS r SET state = coalesce(c.state, r.state), steps = coalesce(c.steps, r.steps),
        tokens = r.tokens + c.tokens, cost_nano_usd = r.cost_nano_usd + c.cost_nano_usd,
        ended_rev = c.ended_rev, ended_at = c.ended_at, outcome = c.outcome
      FROM changed AS c WHERE r.session_id = ${session_id} AND r.started_rev = c.started_rev AND c.skill IS NULL
    )
    INSERT INTO choir_control.skill_runs (session_id, agent_id, started_rev, lane, skill, started_at, state, steps,
      tokens, cost_nano_usd, ended_rev, ended_at, outcome)
    SELECT ${session_id}, ${agent_id}, started_rev, lane, skill, started_at, state, steps, tokens, cost_nano_usd, ended_rev, ended_at, outcome
    FROM changed WHERE skill IS NOT NULL`
})

const jobRow = ({ begun, ended, job_id }: JobChange) => ({
  job_id,
  started_rev: begun?.rev,
  job_name: begun?.job_name,
  skill: begun?.skill,
  resumes: begun?.resumes,
  started_at: begun?.at,
  ended_rev: ended?.rev,
  ended_at: ended?.at,
  outcome: ended?.outcome,
  steps: ended?.steps ?? 0,
  tokens: ended?.tokens ?? 0,
  cost_nano_usd: ended?.cost_nano_usd ?? 0
})

const JOB_COLUMNS = `job_id text, started_rev int, job_name text, skill text, resumes text, started_at timestamptz,
  ended_rev int, ended_at timestamptz, outcome text, steps int, tokens bigint, cost_nano_usd bigint`

const writeJobs = Effect.fnUntraced(function* ({ agent_id, session_id }: Origin, { jobs }: RunChanges) {
  if (jobs.size === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = JSON.stringify([...jobs.values()].map(jobRow))
  yield* sql`WITH changed AS (
      SELECT * FROM jsonb_to_recordset(${rows}::text::jsonb) AS c (${sql.literal(JOB_COLUMNS)})
    ), updated AS (
      UPDATE choir_control.job_runs AS r SET ended_rev = c.ended_rev, ended_at = c.ended_at, outcome = c.outcome,
        steps = c.steps, tokens = c.tokens, cost_nano_usd = c.cost_nano_usd
      FROM changed AS c WHERE r.session_id = ${session_id} AND r.job_id = c.job_id AND c.job_name IS NULL
    )
    INSERT INTO choir_control.job_runs (session_id, agent_id, job_id, started_rev, job_name, skill, resumes, started_at,
      ended_rev, ended_at, outcome, steps, tokens, cost_nano_usd)
    SELECT ${session_id}, ${agent_id}, job_id, started_rev, job_name, skill, resumes, started_at,
      ended_rev, ended_at, outcome, steps, tokens, cost_nano_usd
    FROM changed WHERE job_name IS NOT NULL
    ON CONFLICT (session_id, job_id) DO UPDATE SET started_rev = excluded.started_rev, job_name = excluded.job_name,
      skill = excluded.skill, resumes = excluded.resumes, started_at = excluded.started_at, ended_rev = excluded.ended_rev,
      ended_at = excluded.ended_at, outcome = excluded.outcome, steps = excluded.steps, tokens = excluded.tokens,
      cost_nano_usd = excluded.cost_nano_usd`
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
