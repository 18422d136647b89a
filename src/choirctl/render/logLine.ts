/** Lines of a log. */
import { humanText, type LogLine } from "#src/shared/text/logs.ts"
import { jsonText } from "#src/choirctl/terminal/jsonText.ts"
import { paint, type Paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"

/** A line that a crash tore apart, or that somebody else wrote, is no JSON. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The line as one JSON object, whatever the file holds. */
export const jsonLogLine = (text: string): string => {
  const value = parse(text)
  return jsonText(isRecord(value) ? value : { message: text })
}

const STYLES: Readonly<Record<string, Paint>> = {
  ERROR: "red",
  FATAL: "red",
  WARN: "yellow",
  DEBUG: "dim",
  TRACE: "dim"
}

const isLogLine = (value: unknown): value is LogLine =>
  isRecord(value) && ["timestamp", "level", "source", "message"].every((key) => typeof value[key] === "string")

/** The line for a person: time, level where it matters, lane, message. */
export const peopleLogLine = (text: string, color: boolean): string => {
  const line = parse(text)
  if (!isLogLine(line)) return safeLine(text)
  const style = STYLES[line.level]
  const where = typeof line.lane === "string" && line.lane !== "edge" ? `${line.lane}: ` : ""
  const shown = humanText({ ...line, message: `${where}${line.message}` })
  return style === undefined ? shown : paint(color, style, shown)
}
