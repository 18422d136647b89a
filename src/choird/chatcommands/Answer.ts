/** The answer to a command of a chat. */
import type { CommandWords } from "#schema/ChatCommand.ts"

/** An entry of a numbered list. `number` is what the person sends; `value` is what the command gets. */
export interface Choice {
  readonly number: string
  readonly value: string
  readonly label: string
}

export interface Answer {
  readonly kind: "notice" | "refusal"
  readonly text: string
  /** A numbered list that the text shows, for the command whose argument it asks for. */
  readonly choices?: { readonly words: CommandWords; readonly options: ReadonlyArray<Choice> }
}
