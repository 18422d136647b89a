import { assert } from "@effect/vitest"
import { Effect, Queue, Stream } from "effect"
import { InboxId } from "#schema/Ids.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { describeStores } from "../../support/engines.ts"
import { message, newAgent, DESK, stores } from "../../support/stores.ts"

describeStores("Drafts", (it) => {
  it.effect("go to the DM that their message came from, and nowhere for a message of another agent", () =>
    Effect.gen(function* () {
      const [drafts, inbox] = [yield* Drafts, yield* Inbox]
      const [agent_id, stranger] = [newAgent(), newAgent()]
      const received = yield* inbox.receive(message(agent_id, "a"))
      const inbox_id = received.type === "queued" ? received.inbox_id : InboxId.make("999999999999")
      const shown = yield* Queue.unbounded<ShownDraft>()
      yield* drafts.changes.pipe(
        Stream.runForEach((draft) => Queue.offer(shown, draft)),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* drafts.put(stranger, { inbox_id, text: "mine" })
      yield* drafts.put(agent_id, { inbox_id: InboxId.make("999999999999"), text: "of nothing" })
      yield* drafts.put(agent_id, { inbox_id, text: "It" })
      yield* drafts.put(agent_id, { inbox_id, text: "It is" })
      const place = { agent_id, dm: DESK, inbox_id }
      assert.deepStrictEqual(yield* Queue.take(shown), { ...place, text: "It" })
      assert.deepStrictEqual(yield* Queue.take(shown), { ...place, text: "It is" })
    }).pipe(Effect.provide(stores))
  )
})
