/** The sizes of a conversation's parts. Most parts are measured for many prompts, so that each is measured once. */
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

const once = <A>(measure: (part: Message | Tool) => A) => {
  const known = new WeakMap<Message | Tool, A>()
  return (part: Message | Tool): A => {
    const before = known.get(part)
    if (before !== undefined) return before
    const measured = measure(part)
    known.set(part, measured)
    return measured
  }
}

/** A message or a tool as JSON, for its size. */
export const jsonOf = once((part) => JSON.stringify(part))

/** The texts of a message or a tool that take tokens. */
export const textsOf = (part: Message | Tool): ReadonlyArray<string> => {
  if (!("role" in part)) return [jsonOf(part)]
  const calls = part.role === "assistant" ? (part.calls ?? []) : []
  return [part.content ?? "", ...calls.map((call) => call.arguments)]
}

/** The bytes of those texts. */
export const bytesOf = once((part) => textsOf(part).reduce((sum, text) => sum + Buffer.byteLength(text), 0))

/** Whether one prompt begins with another, message by message. */
export const beginsWith = (messages: ReadonlyArray<Message>, before: ReadonlyArray<Message>): boolean =>
  before.length <= messages.length &&
  before.every((message, index) => {
    const same = messages[index]
    return same === message || (same !== undefined && jsonOf(same) === jsonOf(message))
  })
