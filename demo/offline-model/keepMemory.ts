/** How the offline model answers a compaction and the end of a session: it quotes what was said, the most that it can understand of it. */
import { Predicate } from "effect"
import { type ChatRequest, textOf } from "./ChatCompletion.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { clip } from "./ToolResult.ts"

/** Characters that the offline model quotes of one event when it keeps a memory, and of all of them. */
const OFFLINE_MODEL_MEMORY_LINE_CHARS_MAX = 200
const OFFLINE_MODEL_MEMORY_CHARS_MAX = 1500

/** The one tool that a request offers whose answer is a change of a reference summary. */
export const MEMORY_DELTA = "choir-memory-delta"

/** The one tool that a request offers whose answer is the summary of a session. */
export const SESSION_SUMMARY = "choir-session-summary"

const EVENT = /^(?:[0-9a-f]{12})? ?(UserMsg|AgentMessage|CoreStopped) (\[.*)$/u
const SPEAKERS: Readonly<Record<string, string>> = { UserMsg: "The user said", AgentMessage: "I said", CoreStopped: "" }

const contentOf = (text: string): string => {
  const messages = parseJson(text)
  const first: unknown = Array.isArray(messages) ? messages[0] : undefined
  return Predicate.hasProperty(first, "content") && typeof first.content === "string" ? first.content : ""
}

const quoteOf = (line: string): ReadonlyArray<string> => {
  const [, type = "", text = ""] = EVENT.exec(line) ?? []
  const content = contentOf(text).replaceAll(/\s+/gu, " ").trim()
  if (content === "") return []
  return [clip([SPEAKERS[type], content].filter(Boolean).join(": "), OFFLINE_MODEL_MEMORY_LINE_CHARS_MAX)]
}

/** The newest quotes that fit. */
const newestQuotes = ({ messages }: ChatRequest): ReadonlyArray<string> => {
  const last = messages.at(-1)
  const quotes = (last === undefined ? "" : textOf(last)).split("\n").flatMap(quoteOf)
  const kept: Array<string> = []
  let left = OFFLINE_MODEL_MEMORY_CHARS_MAX
  for (const quote of quotes.toReversed()) {
    left -= quote.length + 1
    if (left < 0) break
    kept.unshift(quote)
  }
  return kept
}

const NOTHING_SAID = "Steps were taken; the log has them."

/** The arguments of the call that keeps the memory. */
export const keepMemory = (request: ChatRequest): Readonly<Record<string, string>> => ({
  mode: "append",
  summary_update: newestQuotes(request).join("\n") || NOTHING_SAID
})

/** The arguments of the call that sums a session up; what was decided or is open it cannot tell. */
export const sumUp = (request: ChatRequest): Readonly<Record<string, string | ReadonlyArray<string>>> => {
  const quotes = newestQuotes(request)
  return {
    title: quotes[0] ?? "A session",
    summary: quotes.join("\n") || NOTHING_SAID,
    decisions: [],
    open_points: [],
    facts: []
  }
}
