/** The effect of a compaction on a state: the oldest part of a lane's window gives way to the summary that replaces it. */
import { Result } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { waitsForPerson } from "./parkTurn.ts"
import { type Folded, laneOf, withLane } from "./lanes.ts"
import { applyDelta, boundedWords } from "./memory.ts"
import type { CoreLane, EdgeLane, SessionState } from "./State.ts"

/** The outputs of a lane that its next steps continue from, by revision: its newest one, and the one of a turn that was set aside. */
export const openOutputs = (memory: EdgeLane | CoreLane): ReadonlyArray<number> =>
  ("job_id" in memory ? [memory.output.rev] : [memory.output_rev, memory.parked?.output_rev ?? 0]).filter(
    (rev) => rev > 0
  )

/** The outputs up to a boundary that stay in the window with their results, since their calls are open. */
export const passedOutputs = (memory: EdgeLane | CoreLane, boundary_rev: number): ReadonlyArray<number> =>
  openOutputs(memory).filter((rev) => rev <= boundary_rev)

/**
 * The outputs that a compaction passes: those that one has already passed, and the one of a turn that waits for a person. That may take as
 * long as the person likes, and others are answered meanwhile, so that it must not hold up what came after it.
 */
export const heldOutputs = (memory: EdgeLane | CoreLane): ReadonlyArray<number> => {
  const passed = passedOutputs(memory, memory.boundary)
  if ("job_id" in memory) return passed
  const waiting = [memory.parked?.output_rev ?? 0, waitsForPerson(memory) ? memory.output_rev : 0]
  return [...new Set([...passed, ...waiting.filter((rev) => rev > 0)])]
}

/**
 * The newest revision that a compaction of a lane is to reach: before the newest output, from which the lane continues, unless that one is
 * held. The open turn's message and a job's task are shown from their own revisions, whatever the window holds.
 */
export const compactionLimit = (state: SessionState, lane: LaneId): number => {
  const memory = laneOf(state, lane)
  if (memory === undefined) return 0
  const held = heldOutputs(memory)
  return openOutputs(memory)
    .filter((rev) => !held.includes(rev))
    .reduce((limit, rev) => Math.min(limit, rev - 1), state.rev)
}

/** Why revisions cannot be those that stay below a compaction's boundary. */
const keptRefused = (memory: EdgeLane | CoreLane, boundary_rev: number, kept: ReadonlyArray<number>) => {
  if (kept.some((rev) => rev > boundary_rev || !memory.window.includes(rev)))
    return "a compaction keeps revisions that are not in the part of the window that leaves"
  return passedOutputs(memory, boundary_rev).every((rev) => kept.includes(rev))
    ? undefined
    : "an output whose calls are open would leave the window"
}

export const compactWindow = (state: SessionState, { lane, payload, rev }: EventOf<"CompactionCommitted">): Folded => {
  const { boundary_rev, delta, kept = [], signal_id, words } = payload
  const memory = laneOf(state, lane)
  if (memory === undefined)
    return signal_id === undefined ? Result.fail(`no job runs on ${lane}`) : Result.succeed(state)
  // An order to compact ends in an event even where there was nothing to do.
  if (boundary_rev <= memory.boundary && signal_id !== undefined && Object.keys(delta).length === 1)
    return Result.succeed(state)
  if (boundary_rev < memory.boundary) return Result.fail(`the window begins after ${memory.boundary} already`)
  if (boundary_rev >= rev) return Result.fail(`a compaction at ${rev} cannot reach ${boundary_rev}`)
  const refused = keptRefused(memory, boundary_rev, kept)
  if (refused !== undefined) return Result.fail(refused)
  return Result.succeed(
    withLane(state, lane, {
      boundary: boundary_rev,
      window: memory.window.filter((seen) => seen > boundary_rev || kept.includes(seen)),
      summary: {
        ...applyDelta(memory.summary, delta),
        files: boundary_rev > memory.boundary ? memory.written : memory.summary.files,
        ...(words === undefined ? {} : { words: boundedWords(words) })
      }
    })
  )
}
