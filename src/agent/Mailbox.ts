/**
 * Messages that wait for edge to be idle (spec 7.1). choird's inbox is the real queue: what stands here is a copy that a restart
 * gets again.
 */
import { Context, Effect, Layer, Queue } from "effect"
import type { UserMessage } from "#schema/Signal.ts"
import { MAILBOX_MAX } from "#src/shared/limits.ts"

/** Holds pushed messages in order until edge takes them. */
export class Mailbox extends Context.Service<
  Mailbox,
  {
    /**
     * Its place in the queue, from 1; 0 for a message that came before, as after a reconnect, which is dropped. choird never has
     * MAILBOX_MAX messages unacknowledged.
     */
    put(message: UserMessage): Effect.Effect<number>
    /** The next message; waits for one. An interrupt leaves it where it was. */
    readonly next: Effect.Effect<UserMessage>
  }
>()("choir/agent/Mailbox") {
  static readonly layer = Layer.effect(
    Mailbox,
    Effect.map(Queue.bounded<UserMessage>(MAILBOX_MAX), (queue) => {
      let newest = 0n
      return Mailbox.of({
        put: (message) => {
          const id = BigInt(message.inbox_id)
          if (id <= newest) return Effect.succeed(0)
          newest = id
          return Effect.andThen(Queue.offer(queue, message), Queue.size(queue))
        },
        next: Queue.take(queue)
      })
    })
  )
}
