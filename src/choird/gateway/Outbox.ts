/** What people are to be told, in order, until a channel delivered it (D6). */
import { Context, type Effect, type Stream } from "effect"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"

export interface Outgoing {
  readonly outbox_id: string
  readonly source: "event" | "choird"
  readonly source_id: string
  readonly part: number
  readonly gateway: ResourceName
  readonly dm: ResourceName
  readonly agent_id: AgentId
  readonly kind: "reply" | "notice" | "report" | "refusal"
  readonly text: string
  readonly in_reply_to: InboxId | null
}

/** Keeps the outbox. Rows from events are written by the EventStore, in the transaction of the event. */
export class Outbox extends Context.Service<
  Outbox,
  {
    /** A message of choird's own, once per source_id. */
    tell(message: Omit<Outgoing, "outbox_id" | "part" | "source">): Effect.Effect<void>
    /** Undelivered rows of a DM in order after an id, at most OUTBOX_PAGE_MAX. */
    undelivered(dm: ResourceName, after: string | undefined): Effect.Effect<ReadonlyArray<Outgoing>>
    delivered(outbox_ids: ReadonlyArray<string>): Effect.Effect<number>
    /** Counts a failed attempt. */
    failed(outbox_id: string): Effect.Effect<void>
    /** Emits at once and then whenever a DM may have new rows. */
    wakes(dm: ResourceName): Stream.Stream<void>
    /** Wakes the readers of a DM; called after a commit that added rows. */
    wake(dm: ResourceName): Effect.Effect<void>
  }
>()("choir/choird/Outbox") {}
