/** What of a tool's output stands in its event (R48): all of it when it fits, else the beginning and the end of each long text. */
import type { Schema } from "effect"
import { TOOL_RESULT_BYTES_MAX } from "#src/shared/limits.ts"

const bytesOf = (value: Schema.Json): number => Buffer.byteLength(JSON.stringify(value))

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
        : bytesOf(value) > chars
          ? cutMiddle(JSON.stringify(value), chars)
          : value
    ])
  )
}

export const inlineResult = (output: Schema.Json): Schema.Json => {
  if (bytesOf(output) <= TOOL_RESULT_BYTES_MAX) return output
  for (let chars = TOOL_RESULT_BYTES_MAX >> 1; chars >= 1024; chars >>= 1) {
    const smaller = shrink(output, chars)
    if (bytesOf(smaller) <= TOOL_RESULT_BYTES_MAX) return smaller
  }
  return cutMiddle(JSON.stringify(output), TOOL_RESULT_BYTES_MAX >> 3)
}
