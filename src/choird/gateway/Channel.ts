/**
 * The port of a messenger: what the way of a message asks of it. A channel hears people and hands their messages to {@link Gateways}, and has a
 * {@link ChannelChat} for each DM, which {@link speak} reads the outbox for. Abilities that texts and cards depend on are in channelTraits.
 */
import type { Deferred, Effect, Stream } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import type { Outgoing, SentAs } from "#src/choird/queues/Outbox.ts"

/** One person or group at a gateway. */
export interface ChannelDm {
  readonly name: ResourceName
  readonly user_id: string
  readonly admin: boolean
}

/** Why a messenger will never take a message. */
export interface Refusal {
  /** In words for a person. */
  readonly description: string
  /** In words for an operator. */
  readonly message: string
  /** Whether the chat takes nothing any more, so that news of it has to go to another one. */
  readonly is_closed: boolean
}

/** A message that a messenger took, as far as it says which one that is, or its refusal. */
export interface Sending {
  readonly sent?: SentAs
  readonly refused?: Refusal
}

/** One chat of a messenger. */
export interface ChannelChat {
  readonly dm: ResourceName
  /** Done once its gateway stops: a delivery then makes no further call. */
  readonly left: Deferred.Deferred<void>
  /** Sends a message whole, from its first part that was not sent, until the messenger takes it or never will. Passing failures are its own to wait out. */
  send(row: Outgoing): Effect.Effect<Sending, DatabaseAway>
  /** Work of the chat once its messages are delivered, and whenever it is woken for that; answers after how many ms it wants to be done again. */
  readonly settle?: {
    readonly work: Effect.Effect<number | undefined, DatabaseAway>
    readonly wakes: Stream.Stream<void>
  }
}
