/** What people sent: a row per message, written before it is acknowledged to the gateway (D6). */
import { Context, type Effect } from "effect"
import type { Attachment } from "#schema/Event.ts"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"

export interface Incoming {
  readonly gateway: ResourceName
  /** The gateway's identity of the message: (gateway, client_id) is unique. */
  readonly client_id: string
  readonly agent_id: AgentId
  readonly dm: ResourceName
  readonly text: string
  readonly attachments: ReadonlyArray<typeof Attachment.Type>
}

export type Received =
  /** `position` 0 is next; a repeated client_id answers its first row. */
  | { readonly type: "queued"; readonly inbox_id: InboxId; readonly position: number }
  /** INBOX_PENDING_MAX messages wait already (R45). */
  | { readonly type: "full"; readonly pending: number }

/** Keeps the inbox and turns its rows into signals of the agent's active session. */
export class Inbox extends Context.Service<
  Inbox,
  {
    /** Stores the message and its signal in one transaction, and wakes the agent's push stream. */
    receive(message: Incoming): Effect.Effect<Received>
    /** Messages of an agent that no event carries yet. */
    pending(agent_id: AgentId): Effect.Effect<number>
    /** A bot's newest update id whose messages are stored; 0 at first. */
    offset(bot: ResourceName): Effect.Effect<number>
    /** Stores messages and the bot's new offset in one transaction, in order. */
    receiveAll(
      bot: ResourceName,
      update_id: number,
      messages: ReadonlyArray<Incoming>
    ): Effect.Effect<ReadonlyArray<Received>>
  }
>()("choir/choird/Inbox") {}
