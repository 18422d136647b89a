/** The sizes of a conversation's parts. */
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

export type { Message, Tool } from "#src/shared/model/Conversation.ts"

/** The texts of messages that take tokens, in pieces that stay the same from prompt to prompt. */
export const textsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap((message) => [
    message.content ?? "",
    ...(message.role === "assistant" ? (message.calls ?? []).map((call) => call.arguments) : [])
  ])

const written = new WeakMap<Message | Tool, string>()

/** A message or a tool as JSON, for its size. Most are measured many times, so that each is written once. */
export const jsonOf = (part: Message | Tool): string => {
  const before = written.get(part)
  if (before !== undefined) return before
  const json = JSON.stringify(part)
  written.set(part, json)
  return json
}
