/**
 * A turn that waits for a person gives way to messages: it is set aside as it is, and taken up again after the reply to each. At most one is
 * set aside, so that what a person approved waits for one turn and no longer.
 */
import { freshLane, withEdge } from "./lanes.ts"
import type { EdgeLane, SessionState } from "./State.ts"

/** Whether nothing of the open turn runs, or may begin, before a person has decided. A skill's steps are not interleaved. */
export const waitsForPerson = ({ calls, skill, state, turn }: EdgeLane): boolean =>
  state === "EDGE_WAITING_TOOL" &&
  turn !== undefined &&
  skill === undefined &&
  calls.every(({ confirm, stage }) => stage === "requested" && confirm !== undefined)

/** Whether a message may be answered before the open turn is. */
export const mayPark = (edge: EdgeLane): boolean => edge.parked === undefined && waitsForPerson(edge)

/** Sets the open turn aside; what begins then finds edge idle. */
export const parkTurn = (state: SessionState): SessionState => {
  const { calls, output_rev, step, turn } = state.edge
  if (turn === undefined || !mayPark(state.edge)) return state
  return withEdge(state, {
    state: "EDGE_IDLE",
    turn: undefined,
    calls: [],
    step: 0,
    output_rev: 0,
    parked: { turn, calls, step, output_rev }
  })
}

/** Takes up what was set aside, once the turn between has its answer. A session that has ended only closes it. */
export const resumeTurn = (state: SessionState): SessionState => {
  const { parked: waiting, state: now } = state.edge
  if (waiting === undefined) return state
  return withEdge(state, {
    ...waiting,
    state: now === "EDGE_TERMINATED" ? now : "EDGE_WAITING_TOOL",
    repetitions: freshLane.repetitions,
    parked: undefined
  })
}
