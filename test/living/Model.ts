/** A model that reacts to the newest words as a sensible one would: habits are asked in turn, and the first that knows what to do answers. */
import { Effect } from "effect"
import { isObject } from "#demo/dialects/jsonKeys.ts"
import type { Answer } from "../support/providers/Answer.ts"
import { type ProviderRequest, type Reply, say } from "../support/testing/Provider.ts"

/** A call of this turn with what it gave. */
export interface Done {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly result: string
}

/** What a request shows of the moment. */
export interface Seen {
  /** The newest words of a person, or of Choir where it asks for something. */
  readonly words: string
  /** What was done since those words. */
  readonly done: ReadonlyArray<Done>
  /** Everything of the conversation that the model is shown, with what is recalled for it. */
  readonly shown: string
  readonly tools: ReadonlySet<string>
  /** Whether a job asks, which cannot start another one. */
  readonly isJob: boolean
  /** How many pictures came with the words. */
  readonly pictures: number
}

export type Habit = (seen: Seen) => Answer | undefined

interface Part {
  readonly role: string
  readonly kind: "text" | "call" | "result" | "image"
  readonly id?: string
  readonly text: string
  readonly name?: string
  readonly input?: Readonly<Record<string, unknown>>
}

const NOTE = "<choir-note>"
const SPAWN = "choir-core-spawn"

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((block) => (isObject(block) && typeof block["text"] === "string" ? block["text"] : "")).join("\n")
}

const partOf = (role: string, block: unknown): ReadonlyArray<Part> => {
  if (!isObject(block)) return []
  const { content, id, input, name, text, tool_use_id, type } = block
  if (type === "text") return [{ role, kind: "text", text: String(text) }]
  if (type === "image") return [{ role, kind: "image", text: "" }]
  if (type === "tool_use" && isObject(input))
    return [{ role, kind: "call", text: "", id: String(id), name: String(name), input }]
  return type === "tool_result" ? [{ role, kind: "result", text: textOf(content), id: String(tool_use_id) }] : []
}

const partsOf = ({ body }: ProviderRequest): ReadonlyArray<Part> => {
  const messages = isObject(body) && Array.isArray(body["messages"]) ? body["messages"] : []
  return messages.flatMap((message: unknown): ReadonlyArray<Part> => {
    if (!isObject(message)) return []
    const { content } = message
    const role = String(message["role"])
    return typeof content === "string"
      ? [{ role, kind: "text", text: content }]
      : Array.isArray(content)
        ? content.flatMap((block: unknown) => partOf(role, block))
        : []
  })
}

/** Notes of Choir that want an answer: the end of a job, words that still wait for one, and the memory of a session. */
const ASKS = /^<choir-note>\n(?:Report:|Still to be answered|Compaction:)/u

export const seenIn = (request: ProviderRequest): Seen => {
  const parts = partsOf(request)
  const isAsking = ({ kind, role, text }: Part) =>
    kind === "text" && role === "user" && (!text.startsWith(NOTE) || ASKS.test(text))
  const at = parts.findLastIndex(isAsking)
  const since = parts.slice(at + 1)
  const results = new Map(since.flatMap(({ id = "", kind, text }) => (kind === "result" ? [[id, text] as const] : [])))
  const tools = isObject(request.body) && Array.isArray(request.body["tools"]) ? request.body["tools"] : []
  const names = new Set(tools.map((tool: unknown) => (isObject(tool) ? String(tool["name"]) : "")))
  return {
    words: parts[at]?.text ?? "",
    done: since.flatMap(({ id = "", input = {}, kind, name = "" }) => {
      const result = results.get(id)
      return kind === "call" && result !== undefined ? [{ tool: name, input, result }] : []
    }),
    shown: parts.map(({ text }) => text).join("\n"),
    tools: names,
    isJob: names.size > 0 && !names.has(SPAWN),
    pictures: parts.slice(Math.max(0, at - 1)).filter(({ kind }) => kind === "image").length
  }
}

/** Answers by habit, each once what `first` waits for has happened. A request that no habit knows is answered with its words, so that the day shows it. */
export const modelOf =
  (habits: ReadonlyArray<Habit>, first: (seen: Seen) => Effect.Effect<unknown>) =>
  (request: ProviderRequest): Reply => {
    const seen = seenIn(request)
    for (const habit of habits) {
      const answer = habit(seen)
      if (answer !== undefined) return Effect.andThen(first(seen), say(answer))
    }
    return say({ text: `I do not know what to do with: ${seen.words}` })
  }
