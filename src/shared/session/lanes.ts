/** Lanes within a state: finding them, changing them, and moving them along their tables. */
import { Result } from "effect"
import { EDGE, jobOf, type LaneId } from "#schema/Ids.ts"
import { CORE_TRANSITIONS, EDGE_TRANSITIONS, type CoreState, type EdgeState, type LaneMove } from "#schema/Lane.ts"
import { emptySummary } from "./memory.ts"
import type { CoreLane, EdgeLane, LaneMemory, SessionState } from "./State.ts"

/** Revisions of a lane's window that the fold keeps. A compaction comes before, so that no window loses its oldest part unsaid but by `fitState`. */
export const WINDOW_REVS_MAX = 1000

/** The state after an event, or why the event does not fit. */
export type Folded = Result.Result<SessionState, string>

/** A lane before its first event. */
export const freshLane: LaneMemory = {
  calls: [],
  step: 0,
  window: [],
  boundary: 0,
  summary: emptySummary,
  seen: new Map(),
  written: [],
  environment: "",
  tainted: false,
  sources: [],
  repetitions: [],
  skill: undefined
}

export const coreOf = (state: SessionState, lane: LaneId): CoreLane | undefined => {
  const job = jobOf(lane)
  return job === undefined ? undefined : state.cores.get(job)
}

/** The lane's memory, or `undefined` for a core job that does not run. */
export const laneOf = (state: SessionState, lane: LaneId): EdgeLane | CoreLane | undefined =>
  lane === EDGE ? state.edge : coreOf(state, lane)

export const withEdge = (state: SessionState, edge: Partial<EdgeLane>): SessionState => ({
  ...state,
  edge: { ...state.edge, ...edge }
})

export const withCore = (state: SessionState, core: CoreLane): SessionState => ({
  ...state,
  cores: new Map(state.cores).set(core.job_name, core)
})

export const withLane = (state: SessionState, lane: LaneId, change: Partial<LaneMemory>): SessionState => {
  if (lane === EDGE) return withEdge(state, change)
  const core = coreOf(state, lane)
  return core === undefined ? state : withCore(state, { ...core, ...change })
}

export const remembered = (window: ReadonlyArray<number>, rev: number): ReadonlyArray<number> =>
  window.length < WINDOW_REVS_MAX ? [...window, rev] : [...window.slice(-(WINDOW_REVS_MAX >> 1)), rev]

export const inWindow = (state: SessionState, lane: LaneId, rev: number): SessionState => {
  const memory = laneOf(state, lane)
  return memory === undefined ? state : withLane(state, lane, { window: remembered(memory.window, rev) })
}

/** Where a move leads from a state, or `undefined` when the table does not allow it. */
const along = <S extends EdgeState | CoreState>(
  table: Readonly<Record<S, Readonly<Partial<Record<LaneMove, ReadonlyArray<S>>>>>>,
  from: S,
  move: LaneMove
): S | undefined => {
  const path = table[from][move]
  return path === undefined ? undefined : (path.at(-1) ?? from)
}

export const move = (state: SessionState, lane: LaneId, name: LaneMove): Folded => {
  const core = coreOf(state, lane)
  if (lane === EDGE) {
    const next = along(EDGE_TRANSITIONS, state.edge.state, name)
    return next === undefined
      ? Result.fail(`${name} is not legal in ${state.edge.state}`)
      : Result.succeed(withEdge(state, { state: next }))
  }
  if (core === undefined) return Result.fail(`no job runs on ${lane}`)
  const next = along(CORE_TRANSITIONS, core.state, name)
  return next === undefined
    ? Result.fail(`${name} is not legal in ${core.state}`)
    : Result.succeed(withCore(state, { ...core, state: next }))
}

/** Whether it is still this job that runs under its name. */
export const isRunning =
  ({ job_id, job_name }: Pick<CoreLane, "job_id" | "job_name">) =>
  ({ cores }: SessionState): boolean =>
    cores.get(job_name)?.job_id === job_id
