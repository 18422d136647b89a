/**
 * How leniently each kind of field of an answer is read, for all three APIs (D64): what is used has to be what it says, and what is not used may
 * be anything and never costs the answer. What is absent, `null` and empty differ where they mean different things.
 *
 * | field                                     | absent, `null`                  | `""`            | of another kind                            |
 * | ----------------------------------------- | ------------------------------- | --------------- | ------------------------------------------ |
 * | the words of an answer                    | none                            | none            | parts: the texts in them; else malformed   |
 * | words beside it: a refusal, reasoning     | none                            | none            | none                                       |
 * | the reason to stop                        | the end has not come            | likewise        | malformed                                  |
 * | the calls of a chat completion            | none                            | malformed       | an object: what is in it; else malformed   |
 * | the function of such a call               | no tool's: it fails alone       | malformed       | malformed                                  |
 * | the name of a call                        | in another piece, or no tool's  | likewise        | malformed                                  |
 * | the arguments of a call                   | in other pieces, or `{}`        | likewise        | an object, a list: as its JSON             |
 * | the place of a piece, such as `index`     | that of the piece before        | likewise        | a number that is written as a text: taken  |
 * | the id of a call                          | none                            | none            | none; it is Choir's ids that go back       |
 * | counts of tokens, money                   | nothing is said, so estimated   | likewise        | likewise (`usage.ts`)                      |
 * | what no line names                        | anything                        | anything        | anything                                   |
 */
import { Predicate, Schema } from "effect"

/** A text of an answer, or its parts: Mistral's models that think, and servers that mix the APIs. */
export const Words = Schema.Union([
  Schema.NullOr(Schema.String),
  Schema.Array(
    Schema.Struct({ type: Schema.optionalKey(Schema.Unknown), text: Schema.optionalKey(Schema.NullOr(Schema.String)) })
  ),
  Schema.Struct({ text: Schema.String })
])

/** The types of parts that are words of the answer; others are thoughts, refusals or what later versions add. */
const SAID = new Set<unknown>(["text", "output_text", undefined])

export const wordsIn = (words: typeof Words.Type | undefined): string => {
  if (words === undefined || words === null || typeof words === "string") return words ?? ""
  if ("text" in words) return words.text
  return words.flatMap(({ text, type }) => (SAID.has(type) ? [text ?? ""] : [])).join("")
}

/** Words beside the answer, and ids. */
export const besideIn = (value: unknown): string => (typeof value === "string" ? value : "")

/** The reason to stop, once there is one. */
export const reasonIn = (reason: string | null | undefined): string | undefined =>
  reason === undefined || reason === null || reason === "" ? undefined : reason

/** The arguments of a call, or of a piece of it, as their JSON. */
export const argumentsIn = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

/** The place of a piece. */
export const placeIn = (value: unknown): number | undefined => {
  const place = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof place === "number" && Number.isFinite(place) ? place : undefined
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The arguments of a call as the value that they mean: null and blanks are an empty object, and a JSON text within a JSON text is read once more where an object is in it. */
export const meantArguments = (value: Schema.Json): Schema.Json => {
  if (value === null) return {}
  if (typeof value !== "string") return value
  if (value.trim() === "") return {}
  try {
    const inner: unknown = JSON.parse(value)
    return isObject(inner) ? (inner as Schema.Json) : value
  } catch {
    return value
  }
}

/** The API whose answers look so, for a server that is asked by another. */
export const apiOf = (data: unknown): "chat" | "messages" | "responses" | undefined => {
  if (!isObject(data)) return undefined
  if (Predicate.hasProperty(data, "choices") && Array.isArray(data.choices)) return "chat"
  const type = Predicate.hasProperty(data, "type") ? data.type : undefined
  if (type === "message_start" || type === "content_block_delta" || type === "message") return "messages"
  const isResponse = Predicate.hasProperty(data, "object") && data.object === "response"
  return isResponse || (typeof type === "string" && type.startsWith("response.")) ? "responses" : undefined
}
