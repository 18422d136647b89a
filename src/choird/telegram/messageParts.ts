/** The messages of Telegram that a text of an agent becomes. Pure. */
import { agentMarkdown, chatText, openingOf, opensPlainly, untapped } from "#src/choird/queues/chatText.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { CHANNEL_TRAITS } from "#src/shared/config/channelTraits.ts"
import { type MarkedText, markedText, splitMarked, trimmed } from "./markedText.ts"

/** UTF-16 units of a message (R43). */
export const TELEGRAM_TEXT_CHARS_MAX = CHANNEL_TRAITS.telegram.text_chars_max
/** UTF-16 units of a text whose marks are read; a longer one goes out as a file, and without marks. */
const MARKED_CHARS_MAX = 32_768

type Row = Pick<Outgoing, "agent_id" | "source" | "text">

/** Whether a text of an agent, as it is shown, is too long for a row of messages. */
export const isLong = (row: Row): boolean => row.source === "event" && agentMarkdown(row).length > MARKED_CHARS_MAX

/** Whether a part begins with a list, a quote or code, which stays whole on a line of its own. */
const beginsWithBlock = ({ entities, text }: MarkedText): boolean =>
  text.startsWith("•") || entities.some(({ offset, type }) => offset === 0 && (type === "pre" || type === "blockquote"))

/** A part that begins with a letter, a digit or a quotation mark: its own, or those of the agent's name before it. */
const opened = (row: Row, part: MarkedText): MarkedText => {
  if (opensPlainly(part.text)) return part
  const before = `${openingOf(row)}${beginsWithBlock(part) ? "\n" : " "}`
  return {
    text: `${before}${part.text}`,
    entities: part.entities.map((entity) => ({ ...entity, offset: entity.offset + before.length }))
  }
}

/** A text as parts of at most `units_max` units, each as Telegram takes it. choird's own texts are plain, and were split when they were stored. */
export const messageParts = (row: Row, units_max: number): ReadonlyArray<MarkedText> => {
  if (row.source === "choird") return [{ text: chatText(row), entities: [] }]
  const markdown = agentMarkdown(row)
  const whole = markdown.length > MARKED_CHARS_MAX ? { text: chatText(row), entities: [] } : markedText(markdown)
  const partsOf = (units: number) =>
    splitMarked(whole, units)
      .map(trimmed)
      .filter(({ text }) => text !== "")
      // Marks and cuts may have stood within what a tap would do something with.
      .map(({ entities, text }) => opened(row, { text: untapped(text), entities }))
  const parts = partsOf(units_max)
  return parts.every(({ text }) => text.length <= units_max) ? parts : partsOf(units_max - openingOf(row).length - 1)
}
