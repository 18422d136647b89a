/** The lines of a file that are nearest to a text that does not occur in it, for a model that misremembers them. Pure. */
import type { NumberedLine } from "#src/agent/model/prompt/textParts.ts"
import { countLines } from "./fileText.ts"
import { linesOf } from "./fileChange.ts"

/** Lines that are shown, and lines of them in front of the nearest one. */
const NEAREST_LINES = 8
const NEAREST_BEFORE = 2
/** Lines and characters of a line that are compared, so that a huge file costs no more than a moment. */
const COMPARED_LINES_MAX = 100_000
const COMPARED_CHARS_MAX = 200
/** The share of words in common from which a line counts as near. */
const SHARE_MIN = 0.5

const wordsOf = (line: string): ReadonlySet<string> =>
  new Set(line.slice(0, COMPARED_CHARS_MAX).match(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [])

const shareOf = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  let common = 0
  for (const word of one) if (other.has(word)) common++
  return (2 * common) / Math.max(1, one.size + other.size)
}

/** The first line of a text that holds something, and how many lines are before it. */
const leading = (text: string) => {
  const lines = text.split("\n")
  const at = Math.max(
    0,
    lines.findIndex((line) => line.trim() !== "")
  )
  return { at, line: (lines[at] ?? "").trim() }
}

/** Lines around the one that is most like the text's first line; none where no line is near. */
export const nearestLines = (bytes: Uint8Array, text: string): ReadonlyArray<NumberedLine> => {
  const { at, line: wanted } = leading(text)
  if (wanted === "") return []
  const words = wordsOf(wanted)
  let best = { line: 0, share: SHARE_MIN }
  const lines = Buffer.from(bytes).toString("utf8").split("\n", COMPARED_LINES_MAX)
  for (const [index, line] of lines.entries()) {
    const share = line.trim() === wanted ? 2 : shareOf(words, wordsOf(line))
    if (share > best.share) best = { line: index + 1, share }
    if (share === 2) break
  }
  if (best.line === 0) return []
  const first = Math.max(1, best.line - at - NEAREST_BEFORE)
  return linesOf(bytes, { first, last: Math.min(countLines(bytes), first + NEAREST_LINES - 1) })
}
