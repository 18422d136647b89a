/** Text of agents, models and files for a terminal. */

/**
 * Everything that a terminal obeys except line feed and tab, and what cannot be seen: marks of direction among them. Joiners stay, which
 * several scripts and composed emoji need.
 */
const OBEYED = /[\p{Cc}\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/gu

/** The text without what could move the cursor, hide or fake output, or answer for the user. */
export const safeText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(OBEYED, (character) => (character === "\n" || character === "\t" ? character : "\u{FFFD}"))

/** The same on one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll(/\s+/gu, " ").trim()
