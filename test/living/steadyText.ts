/** Texts of a screen without what differs from run to run: seconds, the minute within ten, tokens, hashes, ids and folders of the test. */

const HASH = /\b[0-9a-f]{7,64}\b/gu
const ID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gu
const TIME = /\b([01]\d|2[0-3]):([0-5])\d(?::[0-5]\d)?\b/gu
const SPAN = /\b\d+(?:\.\d+)? (?:ms|s)\b/gu
const CODE = /\b[A-Z2-9]{4}-[A-Z2-9]{4}\b/gu
const FOLDER = /\/tmp\/[^\s"')]*\.choir\.d/gu

const MINUTES = /\b(for|completed in) \d+ min(?:utes)?\b/gu
/** Prompts change with every word of Choir's own, and the tokens and their price with them. */
const TOKENS = /\b\d[\d,]*(?: of (\d+))? tokens\b/gu
const PRICE = /\b\d+\.\d\d USD\b/gu

const isHash = (text: string) => /\d/u.test(text) && /[a-f]/u.test(text)

/** Each step begins on the first second of ten minutes and ends within them. */
export const steadyText = (text: string): string =>
  text
    .replaceAll(FOLDER, "~/.choir.d")
    .replaceAll(CODE, "ABCD-2345")
    .replaceAll(ID, "…")
    .replaceAll(HASH, (hash) => (isHash(hash) ? "…" : hash))
    .replaceAll(TIME, (_, hour: string, ten: string) => `${hour}:${ten}0`)
    .replaceAll(SPAN, "a moment")
    .replaceAll(MINUTES, "$1 a while")
    .replaceAll(TOKENS, (_, limit?: string) => (limit === undefined ? "… tokens" : `… of ${limit} tokens`))
    .replaceAll(PRICE, "… USD")
