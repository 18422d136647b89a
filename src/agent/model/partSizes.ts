/** The sizes of a conversation's parts. Most parts are measured for many prompts, so that each is measured once. */
import { weakMemoize, memoizeSum } from "#src/shared/weakMemoize.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

/** A tool as JSON. */
export const jsonOf = weakMemoize((tool: Tool) => JSON.stringify(tool))

/** The texts of a message or a tool that take tokens. */
export const textsOf = (part: Message | Tool): ReadonlyArray<string> => {
  if (!("role" in part)) return [jsonOf(part)]
  const calls = part.role === "assistant" ? (part.calls ?? []) : []
  return [part.content ?? "", ...calls.map((call) => call.arguments)]
}

/** The bytes of those texts. */
const bytesOf = weakMemoize((part: Message | Tool) =>
  textsOf(part).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
)

/** The bytes of all those texts of a prompt. */
export const promptBytes = memoizeSum(bytesOf)

/** The same of tools, of which most calls of a lane have the same list. */
export const toolBytes = weakMemoize((tools: ReadonlyArray<Tool>) =>
  tools.reduce((sum, tool) => sum + bytesOf(tool), 0)
)

/** Characters of tools as they are sent, with the commas between them. */
export const toolChars = weakMemoize((tools: ReadonlyArray<Tool>) =>
  tools.reduce((total, tool) => total + jsonOf(tool).length, Math.max(0, tools.length - 1))
)

/** Characters of messages as they are sent. */
export const promptChars = memoizeSum(weakMemoize((message: Message) => JSON.stringify(message).length))

/** How many messages two prompts have in common from their beginning on. */
export const commonBeginning = (messages: ReadonlyArray<Message>, before: ReadonlyArray<Message>): number => {
  const other = before.findIndex((message, index) => {
    const same = messages[index]
    return same !== message && (same === undefined || JSON.stringify(same) !== JSON.stringify(message))
  })
  return other === -1 ? before.length : other
}
