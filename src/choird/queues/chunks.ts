const HIGH_SURROGATE = /[\uD800-\uDBFF]$/u
const PARAGRAPH_LINE_WORD = ["\n\n", "\n", " "]

/** Where to cut, and how much of what follows is the separator. A cut in the first half would leave a needlessly short part. */
const cutOf = (text: string, chars_max: number): { readonly at: number; readonly skip: number } => {
  for (const separator of PARAGRAPH_LINE_WORD) {
    const at = text.lastIndexOf(separator, chars_max)
    if (at >= chars_max / 2) return { at, skip: separator.length }
  }
  const splitsPair = HIGH_SURROGATE.test(text.slice(0, chars_max)) && text.length > chars_max
  return { at: splitsPair ? chars_max - 1 : chars_max, skip: 0 }
}

/**
 * Splits a text into parts of at most `chars_max` (2 or more) UTF-16 units, at the ends of paragraphs, lines or words, and never
 * inside a surrogate pair (R43). Only blank space at the cuts is lost. A blank text has no parts.
 */
export const chunkText = (text: string, chars_max: number): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let rest = text
  while (rest.length > chars_max) {
    const { at, skip } = cutOf(rest, chars_max)
    parts.push(rest.slice(0, at))
    rest = rest.slice(at + skip)
  }
  return [...parts, rest].filter((part) => part.trim() !== "")
}
