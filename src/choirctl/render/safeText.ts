/** Text of agents, models and files for a terminal. */

/** Everything that a terminal obeys except line feed and tab, and what reverses the direction of writing. */
const OBEYED = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

/** The text without what could move the cursor, hide or fake output, or answer for the user. */
export const safeText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(OBEYED, (character) => (character === "\n" || character === "\t" ? character : "\u{FFFD}"))

/** The same on one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll(/\s+/gu, " ").trim()
