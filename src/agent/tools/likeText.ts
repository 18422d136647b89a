/**
 * Finds a text in a file that differs from it in signs alone that models do not see or copy otherwise: line ends, blanks at the ends of lines,
 * typographic quotes, dashes and spaces, and the two spellings of letters with marks. Pure.
 */

/** Characters of a file that is compared so; a longer one has to be quoted exactly. */
export const LIKE_TEXT_CHARS_MAX = 1024 * 1024

/** One sign with its marks, a syllable in parts, a line's end, or blanks in front of one. */
const PIECES = /\r\n|[ \t\u{a0}]+(?=\r?\n)|[\u{1100}-\u{115f}][\u{1160}-\u{11a7}][\u{11a8}-\u{11ff}]?|\P{M}\p{M}+|[^]/gu

/** Signs that models write as the plain one behind them. */
const ALIKE: ReadonlyArray<readonly [signs: RegExp, plain: string]> = [
  [/^\r\n$/u, "\n"],
  [/^[\u{2018}-\u{201b}]$/u, "'"],
  [/^[\u{201c}-\u{201f}]$/u, '"'],
  [/^[\u{2010}-\u{2014}\u{2212}]$/u, "-"],
  [/^[\u{a0}\u{2002}\u{2003}\u{2009}\u{202f}\u{3000}]$/u, " "]
]

/** A piece as it is compared; what is plain already needs no look. */
const plainOf = (piece: string): string =>
  /^[\n -~]$/u.test(piece) ? piece : (ALIKE.find(([signs]) => signs.test(piece))?.[1] ?? piece.normalize("NFC"))

interface Comparable {
  readonly text: string
  /** Where the piece of each character begins in the original, and its length at the end. */
  readonly starts: ReadonlyArray<number>
}

const comparable = (original: string): Comparable => {
  const starts: Array<number> = []
  let text = ""
  for (const { 0: piece, index } of original.matchAll(PIECES)) {
    const plain =
      /^[ \t\u{a0}]+$/u.test(piece) && /^\r?\n/u.test(original.slice(index + piece.length, index + piece.length + 2))
        ? ""
        : plainOf(piece)
    text += plain
    for (let at = 0; at < plain.length; at++) starts.push(index)
  }
  return { text, starts: [...starts, original.length] }
}

/** A part of a text, from its first character to the one behind its last. */
export interface TextRange {
  readonly from: number
  readonly to: number
}

/** Where a text stands in a file, apart from such signs; none that begins or ends within a letter and its marks. */
export const likeTexts = (file: string, wanted: string): ReadonlyArray<TextRange> => {
  if (file.length > LIKE_TEXT_CHARS_MAX) return []
  const { starts, text } = comparable(file)
  const part = comparable(wanted).text
  if (part.trim() === "") return []
  const isStart = (at: number) => at === 0 || starts[at] !== starts[at - 1]
  const ranges: Array<TextRange> = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    const end = at + part.length
    if (isStart(at) && isStart(end)) ranges.push({ from: starts[at] ?? 0, to: starts[end] ?? file.length })
  }
  return ranges
}
