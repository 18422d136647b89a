/** How much of a model's context its messages may take. */
import { type ChatMessage, jsonOf } from "./chatCompletion.ts"
import { PROMPT_CHARS_PER_TOKEN } from "./Tokens.ts"

/** The room there is: events of the window, and tokens of the model's context that the messages may take. */
export interface Room {
  readonly event_window: number
  readonly tokens: number
}

export const chars = ({ tokens }: Room): number => tokens * PROMPT_CHARS_PER_TOKEN

/** Characters as they are sent. */
export const size = (messages: ReadonlyArray<ChatMessage>): number =>
  messages.reduce((total, message) => total + jsonOf(message).length, 0)
