/** The parts that texts for models are made of: numbered lines, counts, and texts that are cut to a number of bytes. */

import { plural } from "#src/shared/text/counts.ts"

/** Characters of a line that a model is shown; the rest is cut, with a mark. */
export const SHOWN_LINE_CHARS_MAX = 2000

/** Of what is left of a text that is too long by its bytes, the share that is tried next. */
const SHRINK = 0.9

export interface NumberedLine {
  readonly line: number
  readonly text: string
}

/** A line, cut where it is too long. */
export const shortLine = (text: string, chars_max = SHOWN_LINE_CHARS_MAX): string =>
  text.length <= chars_max
    ? text
    : `${text.slice(0, chars_max).toWellFormed()} [cut: ${plural(text.length - chars_max, "more character")}]`

/** A line behind its number and a tab. */
export const numbered = ({ line, text }: NumberedLine): string => `${line}\t${shortLine(text)}`

/** The first of these lines that fit, at least one of them. */
export const fitting = (lines: ReadonlyArray<string>, bytes_max: number): ReadonlyArray<string> => {
  let bytes = 0
  const end = lines.findIndex((line) => {
    bytes += Buffer.byteLength(line) + 1
    return bytes > bytes_max
  })
  return end === -1 ? lines : lines.slice(0, Math.max(1, end))
}

/** A text with its middle left out where it is too long: a command's error stands last, its first complaint first. */
export const fitMiddle = (text: string, bytes_max: number): string => {
  if (Buffer.byteLength(text) <= bytes_max) return text
  for (let chars = Math.min(text.length, bytes_max); ; chars = Math.floor(chars * SHRINK)) {
    const half = Math.floor(chars / 2)
    const mark = `\n[${plural(text.length - 2 * half, "character")} left out]\n`
    const cut = `${text.slice(0, half)}${mark}${half === 0 ? "" : text.slice(-half)}`.toWellFormed()
    if (half === 0 || Buffer.byteLength(cut) <= bytes_max) return cut
  }
}
