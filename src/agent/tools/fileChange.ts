/** The difference that a write made to a file, as line numbers before and after, and a few lines of the result with the new numbers. Pure. */
import { type NumberedLine, shortLine } from "#src/agent/model/prompt/textParts.ts"
import { countLines, lineOffset } from "./fileText.ts"

/** Lines of the result that a write shows. */
const EXCERPT_LINES = 6
/** Characters of each of them. */
const EXCERPT_LINE_CHARS_MAX = 300

const NEWLINE = 0x0a

/** Lines from 1, both ends included; none where `last` is before `first`. */
export interface LineRange {
  readonly first: number
  readonly last: number
}

export interface FileChange {
  readonly from: LineRange
  readonly to: LineRange
}

/** The length of the whole lines with which both begin. */
const sameHead = (one: Uint8Array, other: Uint8Array): number => {
  const most = Math.min(one.length, other.length)
  let length = 0
  while (length < most && one[length] === other[length]) length++
  if (length === 0 || (length === one.length && length === other.length)) return length
  return one.lastIndexOf(NEWLINE, length - 1) + 1
}

/** The length of the whole lines with which both end, behind the first `head` bytes. */
const sameTail = (one: Uint8Array, other: Uint8Array, head: number): number => {
  const most = Math.min(one.length, other.length) - head
  let length = 0
  while (length < most && one[one.length - 1 - length] === other[other.length - 1 - length]) length++
  const begins = (bytes: Uint8Array) => length === bytes.length - head || bytes[bytes.length - length - 1] === NEWLINE
  if (length === 0 || (begins(one) && begins(other))) return length
  const newline = one.indexOf(NEWLINE, one.length - length)
  return newline === -1 ? 0 : one.length - newline - 1
}

/** The lines that differ, or `undefined` where none do. */
export const changeOf = (before: Uint8Array, after: Uint8Array): FileChange | undefined => {
  const head = sameHead(before, after)
  if (head === before.length && head === after.length) return undefined
  const tail = sameTail(before, after, head)
  const first = countLines(before.subarray(0, head)) + 1
  const rangeIn = (bytes: Uint8Array) => ({
    first,
    last: first - 1 + countLines(bytes.subarray(head, bytes.length - tail))
  })
  return { from: rangeIn(before), to: rangeIn(after) }
}

const rangeText = ({ first, last }: LineRange): string => (first === last ? `${first}` : `${first}-${last}`)

const isNone = ({ first, last }: LineRange): boolean => last < first

const linesText = (range: LineRange): string => `${range.first === range.last ? "line" : "lines"} ${rangeText(range)}`

/** `lines 40-44 -> 40-47`: the numbers before and after. */
export const changeText = ({ from, to }: FileChange): string => {
  if (isNone(from)) return `added ${linesText(to)}`
  if (isNone(to)) return `deleted ${linesText(from)}`
  return rangeText(from) === rangeText(to) ? linesText(from) : `lines ${rangeText(from)} -> ${rangeText(to)}`
}

/** These lines of a file, each cut where it is long. */
export const linesOf = (bytes: Uint8Array, { first, last }: LineRange): ReadonlyArray<NumberedLine> => {
  if (last < first) return []
  const part = Buffer.from(bytes.subarray(lineOffset(bytes, first), lineOffset(bytes, last + 1))).toString("utf8")
  return part
    .replace(/\n$/u, "")
    .split("\n")
    .map((text, at) => ({ line: first + at, text: shortLine(text.replace(/\r$/u, ""), EXCERPT_LINE_CHARS_MAX) }))
}

/** A few lines with what changed and its neighbours; of a long change its beginning and its end. */
export const excerptOf = (after: Uint8Array, { to }: FileChange): ReadonlyArray<NumberedLine> => {
  const total = countLines(after)
  const first = Math.max(1, to.first - 1)
  const last = Math.min(total, to.last + 1)
  if (last - first < EXCERPT_LINES) {
    const end = Math.min(total, first + EXCERPT_LINES - 1)
    return linesOf(after, { first: Math.max(1, end - EXCERPT_LINES + 1), last: end })
  }
  const half = EXCERPT_LINES / 2
  return [...linesOf(after, { first, last: first + half - 1 }), ...linesOf(after, { first: last - half + 1, last })]
}
