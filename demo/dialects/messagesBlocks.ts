/** The messages of a request to Anthropic's API, and their blocks. */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { firstOf, type Problem } from "./Rule.ts"

export const messagesOf = (body: Keys): ReadonlyArray<Keys> => listOf(body["messages"]).filter(isObject)
export const blocksOf = ({ content }: Keys): ReadonlyArray<Keys> =>
  typeof content === "string" ? [{ type: "text", text: content }] : listOf(content).filter(isObject)
export const ofType = (message: Keys | undefined, type: string): ReadonlyArray<Keys> =>
  message === undefined ? [] : blocksOf(message).filter((block) => block["type"] === type)

export const say = (message: string): Problem => ({ message })

export const eachBlock =
  (check: (block: Keys, at: string, role: unknown) => Problem | undefined) =>
  (body: Keys): Problem | undefined =>
    firstOf(messagesOf(body), (message, index) =>
      firstOf(blocksOf(message), (block, of) => check(block, `messages.${index}.content.${of}`, message["role"]))
    )
