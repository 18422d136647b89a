/** What Choir itself says to a model between the messages of a conversation. Only the first message of a prompt has the system role (D54). */
import type { ChatMessage } from "#src/agent/model/chatCompletion.ts"

/** Text from outside that cannot pass for a note, nor end one. */
export const withoutNotes = (text: string): string => text.replaceAll(/<(?=\/?choir-note)/giu, "&lt;")

const BEGIN = "<choir-note>\n"
const END = "\n</choir-note>"

/** A message of the user's role that is marked as Choir's. */
export const note = (text: string): ChatMessage => ({ role: "user", content: `${BEGIN}${withoutNotes(text)}${END}` })

/** A note's content, cut after some characters and marked as cut; other content stays as it is. */
export const cutNote = (content: string, chars: number, mark: string): string =>
  content.startsWith(BEGIN) ? `${content.slice(0, chars).toWellFormed()}${mark}${END}` : content

/** How a prompt ends that asks for a correction, after the words that it is about. */
export const askedAgain = (text: string | undefined, correction: string): ReadonlyArray<ChatMessage> => [
  ...((text ?? "").trim() === "" ? [] : [{ role: "assistant" as const, content: text ?? "" }]),
  note(correction)
]
