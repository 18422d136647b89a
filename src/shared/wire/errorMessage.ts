/** The message in a service's error, without the JSON around it. Pure. */
import { Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** The keys under which services say it, and the objects around them. */
const MESSAGE_KEYS = ["error", "message", "msg", "detail", "description"]
const MESSAGE_DEPTH_MAX = 3

const fieldsOf = (value: Schema.Json | undefined): ReadonlyMap<string, Schema.Json> =>
  new Map(typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [])

/** A router's message is its own; the words of the provider behind it are beside it. */
const behind = (fields: ReadonlyMap<string, Schema.Json>): string => {
  const raw = fieldsOf(fields.get("metadata")).get("raw")
  return typeof raw === "string" && raw !== "" ? `: ${raw}` : ""
}

/** Codes that say what the words beside them may not: that a prompt is longer than the model's context, or that the model's own call is refused. */
const TELLING_CODES = new Set(["context_length_exceeded", "model_max_prompt_tokens_exceeded", "tool_use_failed"])

/** The words of an error, with its code where that says more. */
export const withTellingCode = (words: string, code: unknown): string =>
  typeof code === "string" && TELLING_CODES.has(code) && !words.includes(code) ? `${words} (${code})` : words

const messageIn = (value: Schema.Json | undefined, depth: number): string | undefined => {
  if (typeof value === "string") return depth === 0 || value === "" ? undefined : value
  if (Array.isArray(value)) return messageIn(value[0], depth)
  if (depth === MESSAGE_DEPTH_MAX) return undefined
  const fields = fieldsOf(value)
  for (const key of MESSAGE_KEYS) {
    const found = messageIn(fields.get(key), depth + 1)
    if (found !== undefined) return withTellingCode(found, fields.get("code")) + behind(fields)
  }
  return undefined
}

const messageOf = (body: string): string | undefined =>
  Option.match(decode(body), { onNone: () => undefined, onSome: (found) => messageIn(found, 0) })

/** The message in the body of an error, or `undefined` where it has none. A gateway's message may be the whole body of the server behind it. */
export const errorMessage = (body: string): string | undefined => {
  const found = messageOf(body)
  return found === undefined ? undefined : (messageOf(found) ?? found)
}
