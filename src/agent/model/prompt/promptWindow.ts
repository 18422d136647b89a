/** Which events of a lane a prompt shows, and in which order. */
import type { ChoirEvent } from "#schema/Event.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import type { Find } from "#src/agent/arbiter/Proposal.ts"

/**
 * The newest of a window, without results whose call was cut off. Twice `event_window` is shown at most: from `event_window` on the
 * oldest give way to the summary, and until that is done they stay.
 */
export const recent = (window: ReadonlyArray<number>, event_window: number, find: Find): ReadonlyArray<ChoirEvent> => {
  const events = window.slice(-2 * event_window).flatMap((rev) => find(rev) ?? [])
  const proposed = new Set<string>()
  return events.filter((event) => {
    if (event.event_type === "ModelOutput") for (const { call_id } of event.payload.tool_calls) proposed.add(call_id)
    return event.event_type !== "ToolResultCommitted" || proposed.has(event.payload.call_id)
  })
}

/**
 * Without what the model did in earlier steps of its skill: a step is shown what those came to, and its own calls. What
 * people said and what the control plane told stays.
 */
export const ofStep = (
  events: ReadonlyArray<ChoirEvent>,
  skill: ActiveSkill | undefined
): ReadonlyArray<ChoirEvent> => {
  if (skill === undefined) return events
  const left = new Set<string>()
  return events.filter((event) => {
    if (event.event_type === "ToolResultCommitted") return !left.has(event.payload.call_id)
    if (event.event_type !== "ModelOutput" || event.rev < skill.started_rev || event.rev > skill.entered_rev)
      return true
    for (const { call_id } of event.payload.tool_calls) left.add(call_id)
    return false
  })
}

/** A model output with its results, in the order in which providers want them. */
interface Block {
  readonly events: Array<ChoirEvent>
  readonly open: Set<string>
}

/**
 * Results stand right behind their calls: what came among open calls stands after the last result. Where a turn was set aside for a message,
 * its calls stand after that message's turn, with their results, and are left out until they have them.
 */
export const settled = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<ChoirEvent> => {
  const ordered: Array<ChoirEvent> = []
  const held: Array<ChoirEvent> = []
  let block: Block | undefined
  let aside: Block | undefined
  for (const event of events) {
    if (event.event_type === "UserMsg" && block !== undefined) {
      aside = block
      block = undefined
      ordered.push(...held.splice(0))
    }
    const result = event.event_type === "ToolResultCommitted" ? event.payload.call_id : undefined
    if (block === undefined && result !== undefined && aside?.open.has(result) === true) {
      block = aside
      aside = undefined
    }
    if (event.event_type === "ModelOutput" && event.payload.tool_calls.length > 0)
      block = { events: [event], open: new Set(event.payload.tool_calls.map(({ call_id }) => call_id)) }
    else if (block === undefined) ordered.push(event)
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
  return [...ordered, ...(block?.events ?? []), ...held]
}

/** What belongs to an open turn, and the turns between, which are over and stand before it. */
export const ofTurn = (
  events: ReadonlyArray<ChoirEvent>
): { readonly own: ReadonlyArray<ChoirEvent>; readonly between: ReadonlyArray<ChoirEvent> } => {
  const own: Array<ChoirEvent> = []
  const between: Array<ChoirEvent> = []
  let other: string | undefined
  for (const event of events) {
    if (event.event_type === "UserMsg") other = event.payload.inbox_id
    ;(other === undefined ? own : between).push(event)
    if (event.event_type === "AgentMessage" && event.payload.kind === "reply" && event.payload.in_reply_to === other)
      other = undefined
  }
  return { own, between }
}
