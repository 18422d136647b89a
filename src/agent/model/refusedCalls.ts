/**
 * A call that the model's own server refused, as Groq does with one that does not fit its schema: the model learns why, and is asked again. Nothing of it
 * was answered, so that nothing of it is stored.
 */
import type { ModelError } from "#schema/Event.ts"
import { excerpt } from "#src/shared/model/Answer.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { note } from "./choirNote.ts"

/** How often one call of a model is asked again for that. */
export const REFUSED_CALLS_MAX = 2

const REFUSED_CALL =
  /tool_use_failed|tool call validation failed|failed to call a function|failed to parse tool call arguments/iu

/** Whether a server refused the call that its model had just written. */
export const isRefusedCall = (error: ModelError): boolean =>
  (error.kind === "http" || error.kind === "malformed") && REFUSED_CALL.test(error.message)

/** The conversation with what the server said of the call, for the model to make it again. */
export const withRefusedCall = (messages: ReadonlyArray<Message>, error: ModelError): ReadonlyArray<Message> => [
  ...messages,
  { role: "assistant", content: "(I made a tool call that the server did not take.)" },
  note(
    `Your last tool call was refused by the server and not run: ${excerpt(error.message)} Make it again so that it fits the tool's schema, call another tool, or answer in words.`
  )
]
