/** The messages of a conversation that fit where a model's context is too small for all of it. */
import type { ChatMessage } from "#src/agent/model/chatCompletion.ts"
import { size } from "#src/agent/model/promptRoom.ts"
import { cutNote } from "./note.ts"

/** What is left of a tool's result where a prompt has no room for it. */
const PROMPT_RESULT_CHARS_MIN = 500

/** A model's calls with their results, which providers want together, or a message that stands alone. */
const grouped = (messages: ReadonlyArray<ChatMessage>): ReadonlyArray<ReadonlyArray<ChatMessage>> => {
  const groups: Array<Array<ChatMessage>> = []
  for (const message of messages) {
    const last = groups.at(-1)
    if (message.role === "tool" && last !== undefined) last.push(message)
    else groups.push([message])
  }
  return groups
}

/** The newest messages that fit. */
export const fit = (messages: ReadonlyArray<ChatMessage>, chars: number): ReadonlyArray<ChatMessage> => {
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

/** The beginning of a result or a note, the end of what the model itself wrote, where it goes on; the words of people stay whole. */
const part = (message: ChatMessage, chars: number): ChatMessage => {
  if (message.role === "tool") return { ...message, content: `${message.content.slice(0, chars).toWellFormed()}${CUT}` }
  if (message.role === "user") return { ...message, content: cutNote(message.content, chars, CUT) }
  if (message.role !== "assistant" || message.content === null) return message
  return { ...message, content: `${CUT_BEFORE}${message.content.slice(-chars).toWellFormed()}` }
}

/** Cuts long messages, so that a model sees a part of each instead of none. */
export const shortened = (group: ReadonlyArray<ChatMessage>, chars: number): ReadonlyArray<ChatMessage> => {
  if (size(group) <= chars) return group
  const share = Math.max(PROMPT_RESULT_CHARS_MIN, Math.floor(chars / group.length / 2))
  return group.map((message) => ((message.content?.length ?? 0) > share ? part(message, share) : message))
}

/** The same, but the newest are never left out: what a model just asked for is what it goes on from. */
export const fitNewest = (messages: ReadonlyArray<ChatMessage>, chars: number): ReadonlyArray<ChatMessage> => {
  const newest = shortened(grouped(messages).at(-1) ?? [], chars)
  return [...fit(messages.slice(0, messages.length - newest.length), chars - size(newest)), ...newest]
}
