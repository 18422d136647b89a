/**
 * The texts of messages as chats show them. choird's own begin with its mark; an agent's never do, and begin with what nobody takes for it, so
 * that no agent writes an approval card (R54, D60). Pure.
 */
import type { AgentId } from "#schema/Ids.ts"
import { seenText } from "#src/shared/text/seenText.ts"

/** The mark by which a person tells choird's own messages from an agent's. */
const CHOIRD_MARK = "◆"

/** The mark with the blank behind it, in UTF-16 units. */
export const MARK_CHARS = CHOIRD_MARK.length + 1

/** Whether a text of a chat is choird's own, by its mark. */
export const isChoirds = (text: string): boolean => text.startsWith(CHOIRD_MARK)

/** Scripts of today. The letters of others may look like signs: a Runic one is a diamond. */
const SCRIPTS = [
  "Latin Greek Cyrillic Armenian Hebrew Arabic Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala",
  "Thai Lao Tibetan Myanmar Georgian Hangul Ethiopic Khmer Hiragana Katakana Bopomofo Han Mongolian Cherokee Canadian_Aboriginal"
]
  .flatMap((names) => names.split(" "))
  .map((name) => `\\p{Script=${name}}`)
  .join("")

/** A letter, a digit or a quotation mark, without a sign around it. */
const OPENING = new RegExp(
  `^\\s*(?:(?=\\p{L})[${SCRIPTS}]|\\p{Nd}|["'\\p{Pi}\\p{Pf}‚„「『《〈])(?!\\p{M}*\\p{Me})`,
  "u"
)

/** The words of a message, and who says them. */
interface Words {
  readonly agent_id: AgentId
  readonly source: "event" | "choird"
  readonly text: string
}

/** Whether a text as a chat shows it begins as a message of an agent may. */
export const opensPlainly = (text: string): boolean => OPENING.test(text)

/** The words before an agent's text that begins otherwise: its name. */
export const openingOf = ({ agent_id }: Pick<Words, "agent_id">): string => `${agent_id}:`

/** The slash of a command that does something without a word behind it. Apps send one as the person's own message when it is tapped. */
const TAPPED =
  /(?<![\p{L}\p{N}_/<>])\/(?=(?:approve|reject|stop|new|cancel|restart|compact|update|update_all)(?:@\w{1,64})?(?![\w/<>]))/giu

/** A slash that looks the same and that no app makes a command of. A person who copies it with its word means the command. */
export const SLASH = "\u2215"

/** The slashes of addresses that Telegram makes links of and that open no page: they pay, join or change a setting in its app. It looks at the end of a scheme. */
const STARTED = /(?<=(?:tg|ton|tonsite|ftp):)\/\//giu

/** A text in which a tap gives no command and opens nothing but pages of the web. As long as before, so that marks of it keep their places. */
export const untapped = (text: string): string => text.replaceAll(STARTED, `${SLASH}${SLASH}`).replaceAll(TAPPED, SLASH)

/** An agent's Markdown without choird's mark and without commands that a tap would give, and in which everything is seen. Its addresses stay as they are. */
export const agentMarkdown = ({ text }: Pick<Words, "text">): string =>
  seenText(text).replaceAll(TAPPED, SLASH).replaceAll(CHOIRD_MARK, "\\*")

/** Words of others within a message of choird's, in which everything is seen and which a person takes neither for choird's nor for a command. */
export const wordsOfOthers = (text: string): string => untapped(seenText(text)).replaceAll(CHOIRD_MARK, "*")

/** How lists, quotes, headings, tables and code begin, which are read as such on a line of their own. */
const BLOCK = /^\s*[-+*>#|`~]/u

/** The text of a row in a chat, as it is written. */
export const chatText = (row: Words): string => {
  if (row.source === "choird") return `${CHOIRD_MARK} ${row.text}`
  const text = wordsOfOthers(row.text)
  return text.trim() === "" || opensPlainly(text) ? text : `${openingOf(row)}${BLOCK.test(text) ? "\n" : " "}${text}`
}
