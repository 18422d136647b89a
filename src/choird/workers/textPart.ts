/** A part of a long text that fits a prompt. Pure. */
import { WEB_TEXT_BYTES_MAX } from "#src/shared/web/hostQueries.ts"

export interface TextPart {
  readonly text: string
  /** Where the next part begins; absent at the end. */
  readonly next_offset?: number
  readonly chars_total: number
}

/** The longest beginning of a text that has at most so many bytes, ending with a line where one ends in its second half. */
const beginning = (text: string, bytes_max: number): string => {
  let bytes = 0
  let end = 0
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > bytes_max) break
    end += character.length
  }
  if (end === text.length) return text
  const line = text.lastIndexOf("\n", end)
  return text.slice(0, line > end / 2 ? line + 1 : end)
}

/** The part of a text from a character on. */
export const textPart = (text: string, offset: number, bytes_max = WEB_TEXT_BYTES_MAX): TextPart => {
  const part = beginning(text.slice(offset), bytes_max)
  const next = offset + part.length
  return { text: part.toWellFormed(), ...(next < text.length ? { next_offset: next } : {}), chars_total: text.length }
}
