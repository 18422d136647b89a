/** The events of a lane that a prompt shows, in their order, and the messages that fit where the model's context is too small for all of them. */
import type { ChoirEvent } from "#schema/Event.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import type { Find } from "#src/agent/arbiter/Command.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import { size } from "#src/agent/model/Tokens.ts"
import { cutNote } from "./instructions.ts"

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

/** The events of an open turn, and the turns between, which are over and stand before it. */
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

/** The length that is left of a tool's result where a prompt has no room for it. */
const PROMPT_RESULT_CHARS_MIN = 500

/** A model's calls with their results, which providers want together, or a message that stands alone. */
const grouped = (messages: ReadonlyArray<Message>): ReadonlyArray<ReadonlyArray<Message>> => {
  const groups: Array<Array<Message>> = []
  for (const message of messages) {
    const last = groups.at(-1)
    if (message.role === "tool" && last !== undefined) last.push(message)
    else groups.push([message])
  }
  return groups
}

/** The newest messages that fit. */
export const fit = (messages: ReadonlyArray<Message>, chars: number): ReadonlyArray<Message> => {
  const groups = grouped(messages)
  let from = groups.length
  let left = chars
  while (from > 0) {
    left -= size(groups[from - 1] ?? [])
    if (left < 0) break
    from--
  }
  return groups.slice(from).flat()
}

const CUT = " [cut: the context is full]"

const CUT_BEFORE = "[cut: the context is full] "

/** The beginning of a result or a note, the end of what the model itself wrote, where it continues; the words of people stay whole. */
const part = (message: Message, chars: number): Message => {
  if (message.role === "tool") return { ...message, content: `${message.content.slice(0, chars).toWellFormed()}${CUT}` }
  if (message.role === "user") return { ...message, content: cutNote(message.content, chars, CUT) }
  if (message.role !== "assistant" || message.content === null) return message
  return { ...message, content: `${CUT_BEFORE}${message.content.slice(-chars).toWellFormed()}` }
}

/** Cuts long messages, so that a model sees a part of each instead of none. */
export const shortened = (group: ReadonlyArray<Message>, chars: number): ReadonlyArray<Message> => {
  if (size(group) <= chars) return group
  const share = Math.max(PROMPT_RESULT_CHARS_MIN, Math.floor(chars / group.length / 2))
  return group.map((message) => ((message.content?.length ?? 0) > share ? part(message, share) : message))
}

/** The same, but the newest are never left out: a model continues from what it just asked for. */
export const fitNewest = (messages: ReadonlyArray<Message>, chars: number): ReadonlyArray<Message> => {
  const newest = shortened(grouped(messages).at(-1) ?? [], chars)
  return [...fit(messages.slice(0, messages.length - newest.length), chars - size(newest)), ...newest]
}
