/**
 * How soon an event is sent to choird (D7, R13): `now` is what a person or an external effect waits for; `soon` waits for company, since
 * a lane makes several such events a step.
 */
import type { ChoirEvent } from "#schema/Event.ts"
import type { CallId } from "#schema/Ids.ts"
import { CORE_REPORT } from "#src/shared/session/calls.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"

type Urgency = "now" | "soon" | "whenever"

const isExternal = (call_id: CallId) => (call: OpenCall) => call.call_id === call_id && call.effect === "external"

export const urgencyOf = (event: ChoirEvent, state: SessionState): Urgency => {
  switch (event.event_type) {
    case "AgentMessage":
      return "now"
    case "UserMsg":
    case "ModelOutput":
    case "CoreStarted":
    case "CoreStopped":
    case "Cancelled":
      return "soon"
    case "InjectedInstruction":
    case "CompactionCommitted":
      // Somebody waits for what became of the order.
      return event.payload.signal_id === undefined ? "whenever" : "soon"
    case "ToolCallRequested":
      // choird asks a person about what it has in its log. A report is shown to people who watch the job.
      if (event.payload.confirm !== undefined) return "now"
      return event.payload.tool === CORE_REPORT ? "soon" : "whenever"
    case "ToolCallCommitted":
      return laneOf(state, event.lane)?.calls.some(isExternal(event.payload.call_id)) === true ? "now" : "whenever"
    default:
      return "whenever"
  }
}
