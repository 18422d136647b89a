/** The part of a tool's output that its event holds (R48): all of it when it fits, else the beginning and the end of each long text. */
import type { Schema } from "effect"

/** A tool's result as it stands in an event; of a longer one each text keeps its beginning and its end (R48). */
export const TOOL_RESULT_BYTES_MAX = 256 * 1024

export const jsonBytes = (value: Schema.Json): number => Buffer.byteLength(JSON.stringify(value))

/** Keeps both ends: a command's error stands last, its first complaint first. */
const cutMiddle = (text: string, chars: number): string => {
  if (text.length <= chars) return text
  const half = Math.floor(chars / 2)
  const left = text.length - 2 * half
  return `${text.slice(0, half)}\n[${left} characters left out]\n${text.slice(-half)}`.toWellFormed()
}

const shrink = (output: Schema.Json, chars: number): Schema.Json => {
  if (typeof output === "string") return cutMiddle(output, chars)
  if (typeof output !== "object" || output === null || Array.isArray(output))
    return cutMiddle(JSON.stringify(output), chars)
  return Object.fromEntries(
    Object.entries(output).map(([key, value]) => [
      key,
      typeof value === "string"
        ? cutMiddle(value, chars)
        : jsonBytes(value) > chars
          ? cutMiddle(JSON.stringify(value), chars)
          : value
    ])
  )
}

/** The shortest that a long text or value is cut to before the output loses its shape. */
const MEMBER_CHARS_MIN = 1024

/** Whether an object is long by the number of its members, so that cutting each of them is of no use. */
const hasTooManyMembers = (output: Schema.Json, bytes_max: number): boolean => {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return false
  let bytes = 0
  return Object.entries(output).some(([key, value]) => {
    bytes += Math.min(jsonBytes(value), MEMBER_CHARS_MIN) + key.length
    return bytes > bytes_max
  })
}

/** The output, or as much of it as fits; its shape stays when it is an object. */
export const inlineResult = (output: Schema.Json, bytes_max = TOOL_RESULT_BYTES_MAX): Schema.Json => {
  if (jsonBytes(output) <= bytes_max) return output
  const shortest = hasTooManyMembers(output, bytes_max) ? bytes_max : MEMBER_CHARS_MIN
  for (let chars = bytes_max >> 1; chars >= shortest; chars >>= 1) {
    const smaller = shrink(output, chars)
    if (jsonBytes(smaller) <= bytes_max) return smaller
  }
  return cutMiddle(JSON.stringify(output), bytes_max >> 3)
}
