/** The part of a lane's window that a compaction passes and leaves where it is: outputs whose calls are open, with the results that came so far. */
import { heldOutputs, passedOutputs } from "#src/shared/session/compactWindow.ts"
import type { CoreLane, EdgeLane } from "#src/shared/session/State.ts"
import type { Find } from "./Command.ts"

/** The revisions of outputs and of their results, as far as a window has them. */
const withResults = (
  window: ReadonlyArray<number>,
  outputs: ReadonlyArray<number>,
  find: Find
): ReadonlyArray<number> => {
  if (outputs.length === 0) return []
  const calls = new Set<string>(
    outputs.flatMap((rev) => {
      const event = find(rev)
      return event?.event_type === "ModelOutput" ? event.payload.tool_calls.map(({ call_id }) => call_id) : []
    })
  )
  return window.filter((rev) => {
    const event = outputs.includes(rev) ? undefined : find(rev)
    return outputs.includes(rev) || (event?.event_type === "ToolResultCommitted" && calls.has(event.payload.call_id))
  })
}

/** The revisions that a compaction up to a boundary keeps. */
export const keptRevs = (memory: EdgeLane | CoreLane, boundary_rev: number, find: Find): ReadonlyArray<number> =>
  withResults(memory.window, passedOutputs(memory, boundary_rev), find).filter((rev) => rev <= boundary_rev)

/** The revisions that no compaction takes before their turn continues. */
export const heldRevs = (memory: EdgeLane | CoreLane, find: Find): ReadonlyArray<number> =>
  withResults(memory.window, heldOutputs(memory), find)
