/**
 * Jobs that a model's error ended and that edge may resume (D49). A resumed job is the same lane under a new id: its conversation, its taint
 * and its constraints stay, and its counters continue within the limits that it was started with.
 */
import { Result } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { workBefore } from "./jobWork.ts"
import type { CoreLane, SessionState } from "./State.ts"

/** Jobs of a session that can be resumed; the one that ended first gives way. */
export const RESUMABLE_JOBS_MAX = 4
/** Events after a job's end within which it can be resumed, since a recovery has to read its conversation again until then. */
export const RESUMABLE_EVENTS_MAX = 2000

const withoutJob = ({ resumable }: SessionState, job_name: CoreLane["job_name"]) =>
  [...resumable].filter(([name]) => name !== job_name)

/** With a job that has just ended, where its end says that it can be resumed. */
export const keptForResume = (
  state: SessionState,
  core: CoreLane,
  { created_at, payload, rev }: EventOf<"CoreStopped">
): Result.Result<SessionState, string> => {
  const others = withoutJob(state, core.job_name)
  if (payload.resumable === undefined) return Result.succeed({ ...state, resumable: new Map(others) })
  const { left_ms } = payload.resumable
  if (payload.outcome !== "error") return Result.fail("only a job that failed can be resumed")
  if (left_ms > core.budgets.wall_time_ms) return Result.fail("more time is left than the job had")
  const budgets = { ...core.budgets, wall_time_ms: left_ms }
  const kept = { core: { ...core, budgets, work: workBefore(core, created_at) }, stopped_rev: rev }
  return Result.succeed({
    ...state,
    resumable: new Map([...others, [core.job_name, kept] as const].slice(-RESUMABLE_JOBS_MAX))
  })
}

/** The lane that a job begins with: of the job that it resumes, or `undefined` where it begins with nothing. */
export const laneToResume = (
  { resumable }: SessionState,
  { payload: { job_name, resumes }, rev }: EventOf<"CoreStarted">
): Result.Result<Partial<CoreLane>, string> => {
  if (resumes === undefined) return Result.succeed({})
  const kept = resumable.get(job_name)?.core
  if (kept?.job_id !== resumes.job_id)
    return Result.fail(`no job ${job_name} of the id ${resumes.job_id} can be resumed`)
  const { began_rev, boundary, environment, repetitions, report_rev, seen, summary, window, written } = kept
  const { budgets, injections, label, plan, sources, step, tainted, told, tool_calls, work } = kept
  const memory = { boundary, environment, repetitions, seen, summary, written }
  const progress = { began_rev, plan, report_rev, told, work }
  const counters = { budgets, injections, step, tool_calls }
  return Result.succeed({ ...memory, ...progress, ...counters, window: [...window, rev], label, sources, tainted })
}

/** Without the job of a name that is taken again. */
export const nameTaken = (state: SessionState, { payload }: EventOf<"CoreStarted">): SessionState =>
  state.resumable.has(payload.job_name) ? { ...state, resumable: new Map(withoutJob(state, payload.job_name)) } : state

/** Without the jobs that ended too long ago. */
export const withoutExpired = (state: SessionState, rev: number): SessionState => {
  const { resumable } = state
  if (resumable.size === 0) return state
  const kept = [...resumable].filter(([, { stopped_rev }]) => rev - stopped_rev < RESUMABLE_EVENTS_MAX)
  return kept.length === resumable.size ? state : { ...state, resumable: new Map(kept) }
}
