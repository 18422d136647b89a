/** The places where a long text is best divided. Pure. */

/** The best separator first: between paragraphs, lines and words. */
const SEPARATORS = ["\n\n", "\n", " "]

/** Whether the two halves of one character stand around an index. */
export const isInPair = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff && at > 0
}

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
  const end = isInPair(text, end_max) ? end_max - 1 : end_max
  return { end, next: end }
}
