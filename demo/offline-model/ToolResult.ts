/** Tool results as the conversation shows them, and the sentences that the offline model makes of them. */
import { Predicate } from "effect"
import type { Instruction } from "./Instruction.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"

/** Lines of a tool's output that the offline model repeats. */
const OFFLINE_MODEL_LINES_SHOWN_MAX = 12
/** UTF-16 units of one line, reason or report summary that the offline model repeats. */
export const OFFLINE_MODEL_SUMMARY_CHARS_MAX = 1000

/** A result, read leniently: text other than a JSON object counts as a summary. */
export interface ToolResult {
  readonly ok: boolean
  readonly summary: string
  readonly output: unknown
}

const FAILED = new Set(["error", "failed", "timeout", "rejected", "cancelled", "unknown_after_crash"])

/** Text cut to `chars` UTF-16 units, never inside a surrogate pair. */
export const clip = (text: string, chars: number): string =>
  text.length <= chars ? text : text.slice(0, chars).replace(/[\uD800-\uDBFF]$/u, "")

const asText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

const field = (value: unknown, key: string): unknown => (Predicate.hasProperty(value, key) ? value[key] : undefined)

export const readToolResult = (content: string): ToolResult => {
  const value = parseJson(content)
  if (!Predicate.isObject(value)) {
    const summary = (typeof value === "string" ? value : content).trim()
    return { ok: !/^error\b/iu.test(summary), summary, output: value }
  }
  const error = field(value, "error")
  const failed = FAILED.has(asText(field(value, "status"))) || field(value, "ok") === false
  const ok = !failed && (error === undefined || error === null)
  const summary = asText(field(value, "summary")) || asText(field(error, "message") ?? error)
  return { ok, summary: summary || asText(field(value, "status")), output: field(value, "output") }
}

/** The first lines of a text, with the number of those left out. */
const shown = (text: string): string => {
  const lines = text.replace(/\n$/u, "").split("\n")
  const left = lines.length - OFFLINE_MODEL_LINES_SHOWN_MAX
  const head = lines
    .slice(0, OFFLINE_MODEL_LINES_SHOWN_MAX)
    .map((line) => clip(line, OFFLINE_MODEL_SUMMARY_CHARS_MAX))
    .join("\n")
  return left > 0 ? `${head}\n(${left} more lines)` : head
}

const count = (lines: number): string => (lines === 1 ? "1 line" : `${lines} lines`)

const readSentence = (path: string, { output, summary }: ToolResult): string => {
  const content = field(output, "content") ?? output
  if (typeof content !== "string") return summary || path
  const total = field(output, "lines_total")
  const lines = typeof total === "number" ? total : content === "" ? 0 : content.replace(/\n$/u, "").split("\n").length
  return lines === 0 ? `${path} is empty.` : `${path} has ${count(lines)}:\n${shown(content)}`
}

const runSentence = (command: string, { output, summary }: ToolResult): string => {
  const stdout = typeof output === "string" ? output : asText(field(output, "stdout"))
  if (stdout.trim() !== "") return `${command}:\n${shown(stdout)}`
  return output === undefined && summary !== "" ? `${command}: ${summary}` : `${command} ran and printed nothing.`
}

const matchLine = (match: unknown): string => {
  const text = field(match, "text")
  if (text === undefined) return asText(match)
  const place = [field(match, "path"), field(match, "line") ?? field(match, "line_number")].map(asText)
  return [...place.filter((part) => part !== ""), asText(text).trimEnd()].join(":")
}

const searchSentence = (pattern: string, { output, summary }: ToolResult): string => {
  const matches = Array.isArray(output) ? output : field(output, "matches")
  if (Array.isArray(matches)) {
    return matches.length === 0
      ? `Nothing matches ${pattern}.`
      : `${pattern} matches:\n${shown(matches.map(matchLine).join("\n"))}`
  }
  const text = asText(output)
  return text === "" ? `${pattern}: ${summary}` : `${pattern} matches:\n${shown(text)}`
}

const general = (name: string, { output, summary }: ToolResult): string => {
  const details = asText(output)
  const parts = [summary, details === "" || details === summary ? "" : shown(details)]
  return `${name}: ${parts.filter((part) => part !== "").join("\n") || "done"}`
}

/** The reason of a failure: the summary, and what a command wrote to stderr or a tool put in its output. */
const reason = ({ output, summary }: ToolResult): string => {
  const stderr = asText(field(output, "stderr")).trim()
  const detail = stderr || (typeof output === "string" ? output.trim() : asText(field(output, "message")))
  const parts = [summary, summary.includes(detail) ? "" : detail].filter((part) => part !== "")
  return clip(parts.join(": ") || "no reason was given", OFFLINE_MODEL_SUMMARY_CHARS_MAX)
}

/** One sentence on a step that has its result; `undefined` when a success needs no words. */
export const sentence = (step: Instruction, result: ToolResult): string | undefined => {
  if (!result.ok) return `"${clip(step.source, 200)}" failed: ${reason(result)}`
  switch (step.kind) {
    case "read":
      return readSentence(step.path, result)
    case "write":
      return `Wrote ${step.path}.`
    case "append":
      return `Appended to ${step.path}.`
    case "search":
      return searchSentence(step.pattern, result)
    case "run":
      return runSentence(step.command, result)
    case "call":
      return general(step.tool, result)
    case "job":
      return `Started ${step.job}.`
    case "tell":
      return `Told ${step.job}.`
    case "cancel":
      return `Cancelled ${step.job}.`
    case "jobs":
      return general("Jobs", result)
    case "say":
    case "report":
    case "unusable":
      return undefined
  }
}

/** Whether a write was refused because this lane has not seen the file as it is now (E10). */
export const needsReading = ({ ok, output, summary }: ToolResult): boolean =>
  !ok && /\bread\b.{0,40}\bfirst\b|\bnot (?:been )?read\b|\bchanged since\b/iu.test(`${summary} ${asText(output)}`)
