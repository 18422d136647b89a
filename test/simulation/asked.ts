/** What a simulated model reads of a request, whatever dialect the request is written in. */
import type { Dialect } from "#demo/dialects/Dialect.ts"
import { isObject, type Keys, listOf } from "#demo/dialects/jsonKeys.ts"

interface Message {
  readonly role: string
  readonly content: string | null
}

export interface Asked {
  readonly model: string
  /** Absent where the model takes none. */
  readonly temperature?: number
  readonly max_tokens: number
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<string>
}

const textOf = (content: unknown): string | null =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((part) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : "")).join("")
      : null

/** Messages of Anthropic: each block stands alone, since a turn joins what others send apart. */
const blocksOf = ({ content, role }: Keys): ReadonlyArray<Message> =>
  typeof content === "string"
    ? [{ role: String(role), content }]
    : listOf(content).map((block) => {
        const keys = isObject(block) ? block : {}
        return keys["type"] === "tool_result"
          ? { role: "tool", content: textOf(keys["content"]) }
          : { role: String(role), content: typeof keys["text"] === "string" ? keys["text"] : null }
      })

const itemOf = (item: Keys): Message =>
  item["type"] === "function_call_output"
    ? { role: "tool", content: textOf(item["output"]) }
    : { role: typeof item["role"] === "string" ? item["role"] : "assistant", content: textOf(item["content"]) }

const messagesIn = ({ api }: Dialect, body: Keys): ReadonlyArray<Message> => {
  const list = (key: string) => listOf(body[key]).filter(isObject)
  switch (api) {
    case "chat":
      return list("messages").map(({ content, role }) => ({ role: String(role), content: textOf(content) }))
    case "messages":
      return [{ role: "system", content: textOf(body["system"]) }, ...list("messages").flatMap(blocksOf)]
    case "responses":
      return [{ role: "system", content: textOf(body["instructions"]) }, ...list("input").map(itemOf)]
  }
}

const nameOf = (tool: unknown): string => {
  const keys = isObject(tool) ? tool : {}
  return String(isObject(keys["function"]) ? keys["function"]["name"] : keys["name"])
}

export const askedOf = (dialect: Dialect, body: Keys): Asked => {
  const { model, temperature } = body
  return {
    model: String(model),
    ...(typeof temperature === "number" ? { temperature } : {}),
    max_tokens: Number(body["max_tokens"] ?? body["max_completion_tokens"] ?? body["max_output_tokens"]),
    messages: messagesIn(dialect, body),
    tools: listOf(body["tools"]).map(nameOf)
  }
}

/** Whether this is the question of a compaction, which stands at the end of the lane's own prompt. */
export const isCompaction = ({ messages }: Asked): boolean =>
  messages.some(({ content }) => content?.startsWith("<choir-note>\nCompaction:") === true)
