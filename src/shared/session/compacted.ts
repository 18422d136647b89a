/** The effect of a compaction on a state: the oldest part of a lane's window gives way to the summary that replaces it. */
import { Result } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { type Folded, laneOf, withLane } from "./lanes.ts"
import { applyDelta, boundedWords } from "./memory.ts"
import type { SessionState } from "./State.ts"

/**
 * The newest revision that a compaction of a lane may reach. What is open stays: the newest output with its calls, from which the
 * lane continues. The open turn's message and a job's task are shown from their own revisions, whatever the window holds.
 */
export const compactionLimit = (state: SessionState, lane: LaneId): number => {
  const memory = laneOf(state, lane)
  if (memory === undefined) return 0
  const outputs = "job_id" in memory ? [memory.output.rev] : [memory.output_rev, memory.parked?.output_rev ?? 0]
  return outputs.reduce((limit, rev) => (rev === 0 ? limit : Math.min(limit, rev - 1)), state.rev)
}

export const compacted = (state: SessionState, { lane, payload, rev }: EventOf<"CompactionCommitted">): Folded => {
  const { boundary_rev, delta, signal_id, words } = payload
  const memory = laneOf(state, lane)
  if (memory === undefined)
    return signal_id === undefined ? Result.fail(`no job runs on ${lane}`) : Result.succeed(state)
  // An order to compact ends in an event even where there was nothing to do.
  if (boundary_rev <= memory.boundary && signal_id !== undefined && Object.keys(delta).length === 1)
    return Result.succeed(state)
  if (boundary_rev < memory.boundary) return Result.fail(`the window begins after ${memory.boundary} already`)
  if (boundary_rev >= rev || boundary_rev > compactionLimit(state, lane))
    return Result.fail(`the window is needed from ${compactionLimit(state, lane) + 1} on`)
  return Result.succeed(
    withLane(state, lane, {
      boundary: boundary_rev,
      window: memory.window.filter((seen) => seen > boundary_rev),
      summary: {
        ...applyDelta(memory.summary, delta),
        files: boundary_rev > memory.boundary ? memory.written : memory.summary.files,
        ...(words === undefined ? {} : { words: boundedWords(words) })
      }
    })
  )
}
