/** The events of a lane in the order in which its prompts show them. What one prompt shows keeps its place in every later one. */
import type { ChoirEvent, EventOf } from "#schema/Event.ts"

/** Events in the order of prompts, with what is needed to put further ones behind them. */
export interface Ordering {
  readonly events: ReadonlyArray<ChoirEvent>
  /** The ids of the calls that they propose. */
  readonly proposed: ReadonlySet<string>
  /** Whether events wait for the results of calls, so that their place is not known yet. */
  readonly isOpen: boolean
}

export const NOTHING_ORDERED: Ordering = { events: [], proposed: new Set(), isOpen: false }

/** A model output with its results, in the order in which providers want them. */
interface Block {
  readonly events: Array<ChoirEvent>
  readonly open: Set<string>
}

/** The end of what was ordered so far that came while a model was asked: its prompt does not show it, and so it comes after the answer. */
const unseen = (ordered: Array<ChoirEvent>, { payload: { prompt } }: EventOf<"ModelOutput">): Array<ChoirEvent> => {
  if (prompt === undefined) return []
  const from = ordered.findLastIndex(({ rev }) => rev <= prompt.rev)
  return ordered.splice(from + 1)
}

/**
 * Results stand right behind their calls: what came among open calls stands after the last result. Where a turn was set aside for a message,
 * its calls stand after that message's turn, with their results. Calls that have no result yet are left out, with what came among them, and so
 * are results whose call left the window. `before` is not open.
 */
export const orderedAfter = (before: Ordering, events: ReadonlyArray<ChoirEvent>): Ordering => {
  const ordered: Array<ChoirEvent> = [...before.events]
  const proposed = new Set(before.proposed)
  const held: Array<ChoirEvent> = []
  let block: Block | undefined
  let aside: Block | undefined
  for (const event of events) {
    if (event.event_type === "ToolResultCommitted" && !proposed.has(event.payload.call_id)) continue
    const isOfOther = event.event_type === "UserMsg" || event.event_type === "ModelOutput"
    if (isOfOther && block !== undefined) {
      aside = block
      block = undefined
      ordered.push(...held.splice(0))
    }
    const result = event.event_type === "ToolResultCommitted" ? event.payload.call_id : undefined
    if (block === undefined && result !== undefined && aside?.open.has(result) === true) {
      block = aside
      aside = undefined
    }
    if (event.event_type === "ModelOutput") {
      for (const { call_id } of event.payload.tool_calls) proposed.add(call_id)
      const late = unseen(ordered, event)
      if (event.payload.tool_calls.length === 0) ordered.push(event, ...late)
      else {
        block = { events: [event], open: new Set(event.payload.tool_calls.map(({ call_id }) => call_id)) }
        held.push(...late)
      }
    } else if (block === undefined) ordered.push(event)
    else if (result === undefined) held.push(event)
    else {
      block.events.push(event)
      block.open.delete(result)
    }
    if (block?.open.size === 0) {
      ordered.push(...block.events, ...held.splice(0))
      block = undefined
    }
  }
  return { events: ordered, proposed, isOpen: block !== undefined || aside !== undefined }
}
