/** What Choir itself says to a model between the messages of a conversation. Only the first message of a prompt has the system role (D54). */
import type { ChatMessage } from "./chatCompletion.ts"

/** Text from outside that cannot pass for a note, nor end one. */
export const withoutNotes = (text: string): string => text.replaceAll(/<(?=\/?choir-note)/giu, "&lt;")

/** A message of the user's role that is marked as Choir's. */
export const note = (text: string): ChatMessage => ({
  role: "user",
  content: `<choir-note>\n${withoutNotes(text)}\n</choir-note>`
})
