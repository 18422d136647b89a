/** The messages of Telegram that a text of an agent becomes. Pure. */
import { chatText, escapedText, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { type MarkedText, markedText, splitMarked, trimmed } from "./markedText.ts"

/** UTF-16 units of a text whose marks are read; a longer one goes out as a file, and without marks. */
const MARKED_CHARS_MAX = 32_768

/** Whether a text of an agent is too long for a row of messages. */
export const isLong = ({ source, text }: Pick<Outgoing, "source" | "text">): boolean =>
  source === "event" && text.length > MARKED_CHARS_MAX

/** A text as parts of at most `units_max` units, each as Telegram takes it. choird's own texts are plain, and were split when they were stored. */
export const messageParts = (row: Pick<Outgoing, "source" | "text">, units_max: number): ReadonlyArray<MarkedText> => {
  if (row.source === "choird") return [{ text: chatText(row), entities: [] }]
  const whole = isLong(row) ? { text: chatText(row), entities: [] } : markedText(escapedText(row.text))
  return splitMarked(whole, units_max)
    .map(trimmed)
    .filter(({ text }) => text !== "")
}
