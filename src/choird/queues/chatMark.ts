/**
 * The mark by which a person tells choird's own messages from an agent's. Only choird's begin with it: whatever looks like it is taken
 * out of an agent's texts when they are handed to a chat, so that no agent writes an approval card (R54). Pure.
 */
import type { Outgoing } from "./Outbox.ts"

export const CHOIRD_MARK = "◆"

/** The mark with the blank behind it, in UTF-16 units. */
export const MARK_CHARS = CHOIRD_MARK.length + 1

/** Diamonds that a person may take for the mark, and what the look of a character may be changed with. */
const LOOKALIKES =
  /[\u{25C6}\u{25C7}\u{25C8}\u{2666}\u{2662}\u{2756}\u{2B25}\u{2B26}\u{2BC1}\u{2B27}\u{2B28}\u{2B29}\u{2B2A}\u{1F536}-\u{1F539}\u{1F4A0}\u{1F537}\u{29EB}\u{2B16}-\u{2B19}\u{1F798}-\u{1F79B}]\uFE0F?/gu

/** What a chat shows of a row. */
export const chatText = ({ source, text }: Pick<Outgoing, "source" | "text">): string =>
  source === "choird" ? `${CHOIRD_MARK} ${text}` : text.replaceAll(LOOKALIKES, "*")
