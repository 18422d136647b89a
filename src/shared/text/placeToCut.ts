/** The places where a text is best divided: never within what a reader sees as one character. Pure. */

/** The best separator first: between paragraphs, lines and words. */
const SEPARATORS = ["\n\n", "\n", " "]

/** UTF-16 units of one character as a reader sees it. Somebody may put thousands of marks on a letter; those are cut between two of them. */
export const CHARACTER_UNITS_MAX = 64
/** UTF-16 units before a place that are looked at: a row of flags has no sign of where one begins. */
const LOOKED_BACK_UNITS_MAX = 4096

/** Whether the two halves of one code point stand around an index. */
const isInPair = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff && at > 0
}

const isPlain = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at)
  return unit >= 0x20 && unit < 0x7f
}

// Made when it is needed, since most programs never cut a text.
let segmenter: Intl.Segmenter | undefined

/** The start and the end of the character that stands around an index; the index twice where nothing does. */
const around = (text: string, at: number): readonly [start: number, end: number] => {
  if (at <= 0 || at >= text.length || (isPlain(text, at - 1) && isPlain(text, at))) return [at, at]
  const from = Math.max(0, at - LOOKED_BACK_UNITS_MAX)
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" })
  const found = segmenter.segment(text.slice(from, at + CHARACTER_UNITS_MAX)).containing(at - from)
  const start = from + (found?.index ?? at - from)
  const end = start + (found?.segment.length ?? 0)
  if (start === at) return [at, at]
  if (end - start <= CHARACTER_UNITS_MAX) return [start, end]
  return isInPair(text, at) ? [at - 1, at + 1] : [at, at]
}

/** The last place up to `at` that is between two characters. */
const cutBefore = (text: string, at: number): number => around(text, at)[0]

/** The first place from `at` on that is between two characters. */
export const cutAfter = (text: string, at: number): number => around(text, at)[1]

/** The beginning of a text, in at most so many UTF-16 units. */
export const firstPart = (text: string, units_max: number): string =>
  (text.length <= units_max ? text : text.slice(0, cutBefore(text, units_max))).toWellFormed()

/** A text in at most so many UTF-16 units, with a sign where its end is left out. */
export const shortened = (text: string, units_max: number): string =>
  text.length <= units_max ? text.toWellFormed() : `${firstPart(text, units_max - 1)}…`

/** The end of a text, in at most so many UTF-16 units. */
export const lastPart = (text: string, units_max: number): string =>
  (text.length <= units_max ? text : text.slice(cutAfter(text, text.length - units_max))).toWellFormed()

/** The end of a part, and the start of the next one behind the separator between them. */
export interface Cut {
  readonly end: number
  readonly next: number
}

/**
 * The cut that ends a part between `start` and `end_max` at the end of a paragraph, a line or a word, or else between two characters. A cut in
 * the first half would leave a needlessly short part. The separator may begin at `end_max`.
 */
export const placeToCut = (text: string, start: number, end_max: number): Cut => {
  const half = start + (end_max - start) / 2
  for (const separator of SEPARATORS) {
    const end = text.lastIndexOf(separator, end_max)
    if (end >= half) return { end, next: end + separator.length }
  }
  const whole = cutBefore(text, end_max)
  // A part may have less room than one character.
  const end = whole > start ? whole : isInPair(text, end_max) ? end_max - 1 : end_max
  return { end, next: end }
}
