/** The sizes of a conversation's parts. Most parts are measured for many prompts, so that each is measured once. */
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

/** A message or a tool as JSON, for its size. */
export const jsonOf = weakMemoize((part: Message | Tool) => JSON.stringify(part))

/** The texts of a message or a tool that take tokens. */
export const textsOf = (part: Message | Tool): ReadonlyArray<string> => {
  if (!("role" in part)) return [jsonOf(part)]
  const calls = part.role === "assistant" ? (part.calls ?? []) : []
  return [part.content ?? "", ...calls.map((call) => call.arguments)]
}

/** The bytes of those texts. */
export const bytesOf = weakMemoize((part: Message | Tool) =>
  textsOf(part).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
)

/** Whether one prompt begins with another, message by message. */
export const beginsWith = (messages: ReadonlyArray<Message>, before: ReadonlyArray<Message>): boolean =>
  before.length <= messages.length &&
  before.every((message, index) => {
    const same = messages[index]
    return same === message || (same !== undefined && jsonOf(same) === jsonOf(message))
  })
