/** Where sentences end, in any script: most put a blank behind the sign, and those of East and South Asia need none. Thai has no sign. Pure. */

/** Signs that end a sentence where a blank follows. */
const BEFORE_BLANK = ".!?…؟۔։።"
/** Signs that end one wherever they are. */
const ANYWHERE = "。！？｡।॥။។"

const END = new RegExp(`[${BEFORE_BLANK}](?=\\s)|[${ANYWHERE}]`, "gu")
const BETWEEN = new RegExp(`(?<=[${BEFORE_BLANK}])\\s+|(?<=[${ANYWHERE}])\\s*(?![${ANYWHERE}])`, "u")

/** The sentences of a text, without the blanks between them. */
export const sentencesOf = (text: string): ReadonlyArray<string> => text.split(BETWEEN)

/** The place behind the last sentence of a text that ends within it; undefined where none does. */
export const lastSentenceEnd = (text: string): number | undefined => {
  const last = [...text.matchAll(END)].at(-1)
  return last === undefined ? undefined : last.index + last[0].length
}

/** Words that may end a sentence, as they stand within one. */
export const withoutStop = (words: string): string => words.replace(/\.$/u, "")
