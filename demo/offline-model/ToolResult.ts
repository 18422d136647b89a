/** Tool results as the conversation shows them, and the sentences that the offline model makes of them. */
import type { Instruction } from "./Instruction.ts"

/** Lines of a tool's output that the offline model repeats. */
const OFFLINE_MODEL_LINES_SHOWN_MAX = 12
/** UTF-16 units of one line, reason or report summary that the offline model repeats. */
export const OFFLINE_MODEL_SUMMARY_CHARS_MAX = 1000

/** A result: whether it succeeded, and its text without the first line of a failure and the marks of Choir. */
export interface ToolResult {
  readonly ok: boolean
  /** The first line of a failure. */
  readonly problem: string
  readonly text: string
}

/** The first line of a result that is not a success. */
const FAILED = /^(?:error|timeout|rejected|cancelled|unknown_after_crash): /u
/** A line between brackets is Choir's own, as is the list of what a refused call might have been. */
const MARKS =
  /^\[(?:untrusted text|verified: |accepted by the other side|read while|all of it is in|the log has)[^\n]*\]\n?/gmu
const ALLOWED = /^(?:tools that you may call|transitions): [^\n]*\n?/gmu

/** Text cut to `chars` UTF-16 units, never inside a surrogate pair. */
export const clip = (text: string, chars: number): string =>
  text.length <= chars ? text : text.slice(0, chars).replace(/[\uD800-\uDBFF]$/u, "")

export const readToolResult = (content: string): ToolResult => {
  const [first = ""] = content.split("\n", 1)
  const isFailed = FAILED.test(first)
  const rest = (isFailed ? content.slice(first.length + 1) : content).replaceAll(MARKS, "")
  return {
    ok: !isFailed,
    problem: isFailed ? first.replace(FAILED, "") : "",
    text: (isFailed ? rest.replaceAll(ALLOWED, "") : rest).trimEnd()
  }
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

const NUMBER = /^\d+\t/u
const TOTAL = /^lines \d+-\d+ of ([\d,]+)/u

/** The numbered lines of a file without their numbers; the last line says how many there are. */
const readSentence = (path: string, { text }: ToolResult): string => {
  const lines = text.split("\n")
  const content = lines.filter((line) => NUMBER.test(line)).map((line) => line.replace(NUMBER, ""))
  const total = Number(TOTAL.exec(lines.at(-1) ?? "")?.[1]?.replaceAll(",", "") ?? content.length)
  if (content.length > 0) return `${path} has ${count(total)}:\n${shown(content.join("\n"))}`
  return text.endsWith(" is empty") ? `${path} is empty.` : shown(text) || path
}

const EXIT_CODE = /^exit code \d+\n?/u

const runSentence = (command: string, { text }: ToolResult): string => {
  const printed = text.replace(EXIT_CODE, "").split(/^stderr:\n/mu)[0] ?? ""
  return printed.trim() === "" ? `${command} ran and printed nothing.` : `${command}:\n${shown(printed)}`
}

/** Matches as `path:line:text`, which are grouped below their path. */
const matchLines = (text: string): ReadonlyArray<string> => {
  let path = ""
  return text.split("\n").flatMap((line) => {
    if (/^\d+:/u.test(line)) return [`${path}:${line}`]
    path = line
    return []
  })
}

const searchSentence = (pattern: string, { text }: ToolResult): string => {
  const matches = matchLines(text)
  return matches.length === 0 ? `Nothing matches ${pattern}.` : `${pattern} matches:\n${shown(matches.join("\n"))}`
}

const general = (name: string, { text }: ToolResult): string => `${name}: ${shown(text) || "done"}`

/** The reason of a failure: its first line, and what a command wrote to stderr or a tool said besides. */
const reason = ({ problem, text }: ToolResult): string => {
  const detail = (text.split(/^stderr:\n/mu)[1] ?? text).trim()
  const parts = [problem, problem.includes(detail) ? "" : detail].filter((part) => part !== "")
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
    case "remember":
      return `Remembered ${step.key}.`
    case "recall":
      return general(step.query, result)
    case "say":
    case "report":
    case "unusable":
      return undefined
  }
}

/** Whether a write was refused because this lane has not seen the file as it is now (E10). */
export const needsReading = ({ ok, problem }: ToolResult): boolean =>
  !ok && /\bread\b.{0,40}\bfirst\b|\bnot (?:been )?read\b|\bchanged since\b/iu.test(problem)
