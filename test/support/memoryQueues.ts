/** In-memory doubles of the inbox and the outbox, over the messages of a test's world. */
import { Effect, Layer, PubSub, Stream } from "effect"
import { InboxId } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import type { World } from "./control.ts"

/** `inboxFull` refuses messages; an acknowledged row of the outbox is gone. */
export const memoryQueues = (world: Pick<World, "inbox" | "inboxFull" | "outbox" | "wakes">) =>
  Layer.mergeAll(
    Layer.mock(Inbox, {
      receive: (message) =>
        Effect.sync(() => {
          if (world.inboxFull) return { type: "full" as const, pending: 500 }
          world.inbox.push(message)
          return { type: "queued" as const, inbox_id: InboxId.make(String(world.inbox.length)), position: 0 }
        })
    }),
    Layer.mock(Outbox, {
      undeliverable: Effect.succeed([]),
      unread: Effect.succeed([]),
      crowded: Effect.succeed([]),
      waiting: (dm, rows_max) =>
        Effect.sync(() =>
          world.outbox
            .filter((each) => each.dm === dm)
            .slice(0, rows_max)
            .map(({ outbox_id, text }) => ({ outbox_id, bytes: Buffer.byteLength(text) }))
        ),
      undelivered: (dm, after) =>
        Effect.sync(() =>
          world.outbox.filter((each) => each.dm === dm && Number(each.outbox_id) > Number(after ?? 0)).slice(0, 2)
        ),
      delivered: (ids) =>
        Effect.sync(() => {
          const rest = world.outbox.filter(({ outbox_id }) => !ids.includes(outbox_id))
          const acked = world.outbox.length - rest.length
          world.outbox.splice(0, world.outbox.length, ...rest)
          return acked
        }),
      wakes: () => Stream.concat(Stream.make(undefined), Stream.fromPubSub(world.wakes)),
      wake: () => Effect.asVoid(PubSub.publish(world.wakes, undefined))
    })
  )
