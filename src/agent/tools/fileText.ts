/** Lines of a file, counted on its bytes: a newline byte is a newline in UTF-8, and a large file never becomes an array. */
import { isUtf8 } from "node:buffer"

const NEWLINE = 0x0a

export const endsInNewline = (bytes: Uint8Array): boolean => bytes.at(-1) === NEWLINE

/** Whether a file can be shown and edited as text. */
export const isText = (bytes: Uint8Array): boolean => isUtf8(bytes) && !bytes.includes(0)

/** The number of line breaks. */
export const newlines = (bytes: Uint8Array): number => {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}

/** The number of lines; a last line counts with or without its newline. */
export const countLines = (bytes: Uint8Array): number =>
  newlines(bytes) + (bytes.length > 0 && !endsInNewline(bytes) ? 1 : 0)

/** Where a line begins, counted from 1; the end of the file for every line after the last. */
export const lineOffset = (bytes: Uint8Array, line: number): number => {
  let offset = 0
  for (let passed = 1; passed < line && offset < bytes.length; passed++) {
    const newline = bytes.indexOf(NEWLINE, offset)
    offset = newline === -1 ? bytes.length : newline + 1
  }
  return offset
}

const LONE_NEWLINE = /(?<!\r)\n/gu

/** A text with the line ends of a file: models write a newline, which is CRLF in a file whose first line ends so. */
export const withLineEndsOf = (bytes: Uint8Array, text: string): string => {
  const newline = bytes.indexOf(NEWLINE)
  return newline > 0 && bytes[newline - 1] === 0x0d ? text.replaceAll(LONE_NEWLINE, "\r\n") : text
}

/** The longest beginning of a text whose JSON string takes at most so many bytes, in whole lines where one fits. */
export const cutToJsonBytes = (text: string, bytes_max: number): string => {
  const fits = (length: number) => Buffer.byteLength(JSON.stringify(text.slice(0, length))) <= bytes_max
  if (text.length <= bytes_max && fits(text.length)) return text
  let [low, high] = [0, Math.min(text.length, bytes_max)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle - 1
  }
  const line = text.lastIndexOf("\n", low - 1)
  const cut = text.slice(0, line > 0 ? line + 1 : low)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}
