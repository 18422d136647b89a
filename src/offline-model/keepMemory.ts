/** How the offline model answers a compaction: it quotes what was said, which is the most that it can understand of it. */
import { Predicate } from "effect"
import { OFFLINE_MODEL_MEMORY_CHARS_MAX, OFFLINE_MODEL_MEMORY_LINE_CHARS_MAX } from "#src/shared/limits.ts"
import { type ChatRequest, textOf } from "./ChatCompletion.ts"
import { parseJson } from "./looseJson.ts"
import { clip } from "./ToolResult.ts"

/** The one tool that a request offers whose answer is a change of a reference summary (spec 11.3). */
export const MEMORY_DELTA = "choir-memory-delta"

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

/** The arguments of the call that keeps the memory: the newest quotes that fit. */
export const keepMemory = ({ messages }: ChatRequest): Readonly<Record<string, string>> => {
  const last = messages.at(-1)
  const quotes = (last === undefined ? "" : textOf(last)).split("\n").flatMap(quoteOf)
  const kept: Array<string> = []
  let left = OFFLINE_MODEL_MEMORY_CHARS_MAX
  for (const quote of quotes.toReversed()) {
    left -= quote.length + 1
    if (left < 0) break
    kept.unshift(quote)
  }
  return { mode: "append", summary_update: kept.join("\n") || "Steps were taken; the log has them." }
}
