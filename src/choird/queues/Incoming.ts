/** A message for an agent, as the inbox takes it. */
import type { Attachment } from "#schema/Event.ts"
import type { Join } from "./messageJoin.ts"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"

export interface Incoming {
  readonly gateway: ResourceName
  /** The gateway's identity of the message: (gateway, client_id) is unique. */
  readonly client_id: string
  readonly agent_id: AgentId
  readonly dm: ResourceName
  readonly text: string
  /** Whether the person forwarded it from somebody else. */
  readonly forwarded?: boolean
  readonly attachments: ReadonlyArray<typeof Attachment.Type>
  /** The number and the topic of the message in its chat, for an answer that quotes it there. */
  readonly message_id?: number
  readonly thread_id?: number
  /** Absent where each message is one of its own. */
  readonly join?: Join
  /** The message that this one corrects. */
  readonly corrects?: InboxId
}
