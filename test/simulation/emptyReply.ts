/** Replies without words, which an agent asks its model for once more. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"

/** The outputs of edge's open turn, which began with the event at `from`. */
const outputsOf = (events: ReadonlyArray<ChoirEvent>, from: number): ReadonlyArray<EventOf<"ModelOutput">> =>
  events
    .slice(from)
    .filter(
      (event): event is EventOf<"ModelOutput"> =>
        event.event_type === "ModelOutput" &&
        event.lane === EDGE &&
        (event.payload.purpose === "turn" || event.payload.purpose === "report")
    )

const isWordless = ({ payload: { error, text, tool_calls } }: EventOf<"ModelOutput">): boolean =>
  error === undefined && tool_calls.length === 0 && (text ?? "").trim() === ""

export const isEmptyReply = (event: ChoirEvent): boolean => outputsOf([event], 0).some(isWordless)

/** Whether the newest of these outputs is an empty reply and the first final one, so that the turn has no answer yet. */
export const isAskedAgain = (events: ReadonlyArray<ChoirEvent>, from: number): boolean => {
  const outputs = outputsOf(events, from)
  const [last, before] = [outputs.at(-1), outputs.at(-2)]
  return last !== undefined && isWordless(last) && (before === undefined || before.payload.tool_calls.length > 0)
}
