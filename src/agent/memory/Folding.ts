/** An event that leaves a window. */
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"

/** An event of a window as the compaction's model reads it. */
export interface Folding {
  readonly event: ChoirEvent
  readonly hash: string
  readonly messages: ReadonlyArray<Message>
}
