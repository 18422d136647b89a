/**
 * Messages that wait for edge to be idle. choird's inbox is the real queue: what stands here is a copy that a restart
 * gets again.
 */
import { Context, Effect, Latch, Layer } from "effect"
import type { UserMessage } from "#schema/Signal.ts"

/** Messages that an agent holds until edge is idle; more than choird lets wait for one agent. */
const MAILBOX_MAX = 1000

/** Holds pushed messages in order until edge takes them. */
export class Mailbox extends Context.Service<
  Mailbox,
  {
    /**
     * Its place in the queue, from 1; 0 for a message that came before, as after a reconnect or an edit: it replaces the one that
     * still waits, and is dropped if none does. choird never has
     * MAILBOX_MAX messages unacknowledged.
     */
    put(message: UserMessage): Effect.Effect<number>
    /** Waits until there is a message, and takes none: a wait that loses a race must not lose a message. */
    readonly arrived: Effect.Effect<void>
    /** Takes the next message, in the same turn in which its commit is decided. */
    take(): UserMessage | undefined
    /** Gives out no message until it is called with `false`: what waits is for the next session. */
    hold(held: boolean): void
  }
>()("choir/agent/Mailbox") {
  static readonly layer = Layer.effect(
    Mailbox,
    Effect.map(Latch.make(false), (filled) => {
      const waiting: Array<UserMessage> = []
      let newest = 0n
      let held = false
      return Mailbox.of({
        put: (message) =>
          Effect.suspend(() => {
            const id = BigInt(message.inbox_id)
            if (id <= newest) {
              // The person edited it while it waited.
              const at = waiting.findIndex(({ inbox_id }) => inbox_id === message.inbox_id)
              if (at >= 0) waiting[at] = message
              return Effect.succeed(0)
            }
            if (waiting.length === MAILBOX_MAX)
              return Effect.die(new Error("choird lets more messages wait than it may"))
            newest = id
            waiting.push(message)
            if (!held) filled.openUnsafe()
            return Effect.succeed(waiting.length)
          }),
        arrived: filled.await,
        take: () => {
          const message = held ? undefined : waiting.shift()
          if (waiting.length === 0) filled.closeUnsafe()
          return message
        },
        hold: (isHeld) => {
          held = isHeld
          if (held || waiting.length === 0) filled.closeUnsafe()
          else filled.openUnsafe()
        }
      })
    })
  )
}
