/** Messages of the user's role that Choir writes, told apart from the user's own. */
import type { Message } from "#src/shared/model/Conversation.ts"

/** Text from outside that cannot pass for a note, nor end one, however its tag is spaced or bracketed. */
export const withoutNotes = (text: string): string =>
  text.replaceAll(/[<\uFE64\uFF1C](?=[^\p{L}]{0,8}choir[^\p{L}]{0,8}note)/giu, "&lt;")

const BEGIN = "<choir-note>\n"
const END = "\n</choir-note>"

/** A message of the user's role that is marked as Choir's. */
export const note = (text: string): Message => ({ role: "user", content: `${BEGIN}${withoutNotes(text)}${END}` })

export const isNote = (content: string): boolean => content.startsWith(BEGIN)
