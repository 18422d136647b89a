/** The text of a message that corrects an earlier one, which the agent has taken already. Pure. */

/** Characters of the earlier text that are quoted. */
const QUOTE_CHARS_MAX = 200

const BEGIN = "[The user edited an earlier message"

const quote = (text: string): string =>
  JSON.stringify(text.length <= QUOTE_CHARS_MAX ? text : `${text.slice(0, QUOTE_CHARS_MAX).toWellFormed()}…`)

/** @param before the earlier text; empty where it is not kept any more */
export const correction = (before: string, now: string): string =>
  `${BEGIN}${before === "" ? "" : `, which was: ${quote(before)}`}. It is now:]\n${now}`

/** A correction that a further edit changes: it quotes the same text. */
export const corrected = (earlier: string, now: string): string => `${earlier.split("\n", 1)[0] ?? ""}\n${now}`
