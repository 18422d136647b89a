/** The patterns that are made of a language's words. */
import type { Language } from "./Language.ts"

/** Letters and digits, for a character class. With `\p{L}`, which is all of Unicode in both cases, a pattern takes fifteen times as long to compile. */
export const LETTERS = String.raw`\wÀ-ɏЀ-ӿ`

/** A pattern of whole words. In languages without blanks, words have no edges. */
export const wordOf = ({ isSpaced }: Language, source: string): string =>
  isSpaced ? String.raw`(?<![${LETTERS}])(?:${source})(?![${LETTERS}])` : `(?:${source})`

export const gapOf = ({ isSpaced }: Language): string => (isSpaced ? String.raw`\s{1,3}` : String.raw`\s{0,3}`)

/** A number of digits, or one of the language's words. */
export const numberOf = ({ isSpaced, numbers }: Language): string => {
  const words = Object.keys(numbers).toSorted((a, b) => b.length - a.length)
  const start = isSpaced ? `(?<![${LETTERS}])` : ""
  return String.raw`\d{1,7}(?:[.,]\d{1,2})?|${start}(?:${words.join("|")})`
}

export const numberValue = ({ numbers }: Language, text: string): number =>
  numbers[text.toLowerCase()] ?? Number(text.replace(",", "."))

export type Edge = "first" | "last"

/** No pattern sees more of a text than this many characters and numbers. */
export const WINDOW_CHARS = 72
const WINDOW_NUMBERS = 7

/** The part of a text in which a time is looked for. A time is on one line, and has no run of blanks, which some patterns read again and again. */
export const windowOf = (edge: Edge, text: string): string => {
  if (edge === "first") {
    const found = text.slice(0, WINDOW_CHARS).split(/\n|\s{3}/u, 1)[0] ?? ""
    return found.slice(0, [...found.matchAll(/\d+/gu)][WINDOW_NUMBERS]?.index)
  }
  const found =
    text
      .slice(-WINDOW_CHARS)
      .split(/\n|\s{3}/u)
      .at(-1) ?? ""
  const before = [...found.matchAll(/\d+/gu)].at(-1 - WINDOW_NUMBERS)
  return before === undefined ? found : found.slice(before.index + before[0].length)
}
