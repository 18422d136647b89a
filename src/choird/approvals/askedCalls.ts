/** Whether the stored log has what an approval is asked for: what is shown to a person is then what would run (R54). Pure. */
import type { Schema } from "effect"
import type { ConfirmTool } from "#schema/Approval.ts"
import { type CallId, EDGE, type LaneId } from "#schema/Ids.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { toWireName } from "#schema/Tool.ts"
import { callDigest } from "#src/shared/session/calls.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** Whether this very call is open and waits for a person. */
export const isAsked = (state: SessionState, call_id: CallId, { input, lane, tool, why }: ConfirmTool): boolean => {
  const call = laneOf(state, lane)?.calls.find((open) => open.call_id === call_id)
  return (
    call?.stage === "requested" &&
    call.confirm === why &&
    call.name.replaceAll(".", "-") === toWireName(tool) &&
    call.digest === callDigest(call.name, input)
  )
}

/** The lane that has this very proposal as an open call, which began to run. */
export const proposedOn = (
  state: SessionState,
  call_id: CallId,
  kind: ProposalKind,
  payload: Schema.Json
): LaneId | undefined => {
  const lanes = [{ lane: EDGE, calls: state.edge.calls }, ...state.cores.values()]
  for (const { calls, lane } of lanes) {
    const call = calls.find((open) => open.call_id === call_id)
    if (call === undefined) continue
    const isIt =
      call.stage === "committed" &&
      call.name.replaceAll(".", "-") === `choir-propose-${kind}` &&
      call.digest === callDigest(call.name, payload)
    return isIt ? lane : undefined
  }
  return undefined
}
