/**
 * The beginning and the end of a text, as texts of their own. A slice shares the memory of what it was cut from: a state that keeps 200
 * characters of an event of half a megabyte would keep all of it.
 */

const ownText = (part: string): string => Buffer.from(part).toString()

/** The first characters of a text. */
export const firstChars = (text: string, chars: number): string =>
  text.length <= chars ? text.toWellFormed() : ownText(text.slice(0, chars))

/** The last characters of a text. */
export const lastChars = (text: string, chars: number): string =>
  text.length <= chars ? text.toWellFormed() : ownText(text.slice(text.length - chars))
