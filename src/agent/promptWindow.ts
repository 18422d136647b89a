/** Which events of a lane a prompt shows, and in which order. */
import type { ChoirEvent } from "#schema/Event.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"

/** The event of a revision, or `undefined` when it left this process (D9). */
export type Find = (rev: number) => ChoirEvent | undefined

/**
 * The newest of a window, without results whose call was cut off. Twice `event_window` is shown at most: from `event_window` on the
 * oldest give way to the summary, and until that is done they stay (spec 11.3).
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
 * Without what the model did in earlier steps of its skill: a step is shown what those came to, and its own calls (spec 10.2). What
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

/** Injections that came among open calls stand after the last result: providers want results right behind their calls. */
export const settled = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<ChoirEvent> => {
  const open = new Set<string>()
  const held: Array<ChoirEvent> = []
  const ordered: Array<ChoirEvent> = []
  for (const event of events) {
    if (event.event_type === "ModelOutput") for (const { call_id } of event.payload.tool_calls) open.add(call_id)
    const belongs = event.event_type === "ModelOutput" || event.event_type === "ToolResultCommitted"
    if (event.event_type === "ToolResultCommitted") open.delete(event.payload.call_id)
    if (belongs || open.size === 0) ordered.push(event)
    else held.push(event)
    if (open.size === 0) ordered.push(...held.splice(0))
  }
  return [...ordered, ...held]
}
