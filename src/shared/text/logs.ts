/** Log lines: one JSON object each, at most LOG_LINE_BYTES_MAX, with nothing in them that a terminal obeys. */
import { Cause, type Logger, References, Result } from "effect"

/** A line of a log file (R77). */
export const LOG_LINE_BYTES_MAX = 16 * 1024
/** Characters of one text within a log line; the rest is cut. */
const LOG_TEXT_CHARS_MAX = 4000

/** A line before it is written. Further fields keep their names. */
export interface LogLine {
  readonly timestamp: string
  readonly level: string
  /** `choird`, or the agent's id. */
  readonly source: string
  readonly message: string
  readonly session_id?: string
  readonly lane?: string
  readonly [field: string]: unknown
}

const cut = (text: string, chars_max: number) =>
  text.length <= chars_max ? text : `${text.slice(0, chars_max).toWellFormed()}… (${text.length - chars_max} more)`

const bounded = (value: unknown): unknown => {
  if (typeof value === "string") return cut(value, LOG_TEXT_CHARS_MAX)
  if (typeof value === "bigint") return String(value)
  return value
}

/** The fields that a line keeps when the others are too long, or cannot be written as JSON: enough to find what it is about. */
const KEPT = ["timestamp", "level", "source", "session_id", "agent_id", "lane", "ref"] as const
const KEPT_CHARS_MAX = 100

const shortened = (line: LogLine): string => {
  const kept = KEPT.flatMap((key) => {
    const value = line[key]
    return typeof value === "string" ? [[key, value.slice(0, KEPT_CHARS_MAX)] as const] : []
  })
  // A character is six bytes at most where JSON escapes it.
  return JSON.stringify({ ...Object.fromEntries(kept), message: cut(line.message, LOG_LINE_BYTES_MAX / 8), cut: true })
}

/** The line as text without its end. One that would be too long keeps what identifies it and a shorter message. */
export const logText = (line: LogLine): string => {
  const text = Result.try(() =>
    JSON.stringify(Object.fromEntries(Object.entries(line).map(([key, value]) => [key, bounded(value)])))
  )
  return Result.isSuccess(text) && Buffer.byteLength(text.success) <= LOG_LINE_BYTES_MAX
    ? text.success
    : shortened(line)
}

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Error)

const text = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value instanceof Error
      ? value.message
      : Result.getOrElse(
          Result.try(() => JSON.stringify(value) ?? String(value)),
          () => String(value)
        )

const causeOf = (cause: Cause.Cause<unknown>, parts: ReadonlyArray<unknown>): string | undefined => {
  if (cause.reasons.length > 0) return Cause.pretty(cause)
  return parts.find((part) => part instanceof Error)?.stack
}

/** A message to Effect's logger, as a line of this program: texts make the message, objects and annotations are fields. */
export const logLine = (source: string, options: Logger.Options<unknown>): LogLine => {
  const { date, fiber, logLevel, message } = options
  const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
  const cause = causeOf(options.cause, parts)
  const fixed = { timestamp: date.toISOString(), level: logLevel.toUpperCase(), source }
  const annotations = fiber.getRef(References.CurrentLogAnnotations)
  const fields: Readonly<Record<string, unknown>> = Object.assign({}, annotations, ...parts.filter(isFields))
  const words = parts.filter((part) => !isFields(part)).map(text)
  return { ...fixed, ...fields, ...fixed, message: words.join(" "), ...(cause === undefined ? {} : { cause }) }
}

/** Control characters would let a line of an agent command the terminal that shows it. */
const CONTROL = /[\p{Cc}\u{2028}\u{2029}\p{Bidi_Control}]+/gu

/** A line for a person at a terminal. */
export const humanText = ({ agent_id, cause, level, message, timestamp }: LogLine): string => {
  const who = typeof agent_id === "string" ? `${agent_id}: ` : ""
  const why = typeof cause === "string" ? ` (${cause.split("\n", 1)[0]})` : ""
  const grade = level === "INFO" ? "" : `${level} `
  return `${timestamp.slice(11, 19)} ${grade}${who}${message}${why}`.replaceAll(CONTROL, " ")
}
