/** A lane's prompt, as far as it is known before the call. */
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

/** The beginning of a lane's next call. */
export interface LanePrefix {
  readonly model: string
  readonly tools: ReadonlyArray<Tool>
  readonly messages: ReadonlyArray<Message>
}
