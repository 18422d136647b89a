import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { describeEngines } from "../../support/engines.ts"
import { newTalk, stores } from "../../support/stores.ts"

describeEngines("EventStore", (it) => {
  it.effect("stores what follows and answers with the new revision", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = (yield* newTalk).turn(1)
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(0)), { action: "OK", ack_rev: 3 })
      assert.deepStrictEqual(yield* store.head(talk.caller.session_id), { rev: 3, hash: talk.hash(3) })
      assert.deepStrictEqual(yield* store.verify(talk.caller.session_id), { ok: true, events: 3, head: talk.hash(3) })
    }).pipe(Effect.provide(stores))
  )
})
