import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Rev } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { FORGOTTEN_EVENTS_MAX } from "#src/choird/sessions/forgetEvents.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, newTalk, rowOf, stores, type Talk } from "../../support/stores.ts"
import { storeVersion1 } from "../../support/storedVersions.ts"
import { historyProblems } from "../../support/verifyHistory.ts"

const append = Effect.fnUntraced(function* (talk: Talk, from: number) {
  const store = yield* EventStore
  assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(from))).action, "OK")
})
const revs = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => Rev.make(from + n))
const printed = (talk: Talk) =>
  Effect.flatMap(EventStore, ({ events }) => Stream.runCollect(events(talk.caller.session_id, { follow: false })))

describeStores("forgetting events", (it) => {
  it.effect("reduces them and lists them at the end of an ended session, whose chain verifies (D52)", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = (yield* newTalk).turn(1, "My pin is 4711.").turn(2, "Fine.")
      const { session_id } = talk.caller
      yield* append(talk, 0)
      yield* (yield* SessionStore).end(session_id, "stopped")
      assert.deepInclude(yield* store.forget(session_id, revs(1, 3)), { reduced: 3, fixed: 0, archived: false })
      // Once is enough.
      assert.deepInclude(yield* store.forget(session_id, revs(1, 3)), { reduced: 0 })
      assert.deepInclude(yield* store.verify(session_id), { ok: true, events: 7, forgotten: 3 })
      const lines = yield* printed(talk)
      assert.notInclude(JSON.stringify(lines), "4711")
      assert.include(JSON.stringify(lines), "Fine.")
      assert.deepStrictEqual(historyProblems(session_id, lines as never), [])
    }).pipe(Effect.provide(stores))
  )

  it.effect("fences the epoch of a running agent, whose session then continues without the text", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = (yield* newTalk).turn(1, "My pin is 4711.")
      const { session_id } = talk.caller
      yield* append(talk, 0)
      yield* store.forget(session_id, revs(1, 3))
      talk.turn(2)
      assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(3))).action, "FENCED")
      assert.isNull((yield* rowOf(talk)).frozen_reason)
      const sessions = yield* SessionStore
      yield* sessions.end(session_id, "crashed")
      const resumed = yield* sessions.resume(session_id, BINDINGS, "v1")
      assert.isAbove(resumed.epoch, talk.caller.epoch + 1)
      const { events } = yield* store.recovery(session_id)
      assert.notInclude(JSON.stringify(events), "4711")
      assert.strictEqual(events.at(-1)?.event_type, "MemoryWriteCommitted")
    }).pipe(Effect.provide(stores))
  )

  it.effect("says how many events of version 1 stay whole", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = (yield* newTalk).turn(1, "My pin is 4711.")
      yield* storeVersion1(talk)
      yield* append(talk.turn(2, "Fine."), 3)
      assert.deepStrictEqual(yield* store.forget(talk.caller.session_id, revs(1, 6)), {
        reduced: 3,
        fixed: 3,
        archived: false
      })
    }).pipe(Effect.provide(stores))
  )

  it.effect("takes more events than one listing names", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* EventStore
      const talk = yield* newTalk
      const turns = Math.ceil(FORGOTTEN_EVENTS_MAX / 3) + 1
      for (let turn = 1; turn <= turns; turn += 1) talk.turn(turn, "My pin is 4711.")
      const { session_id } = talk.caller
      yield* append(talk, 0)
      const { reduced } = yield* store.forget(session_id, revs(1, talk.rev))
      assert.isAbove(reduced, FORGOTTEN_EVENTS_MAX)
      assert.deepInclude(yield* store.verify(session_id), { ok: true, events: talk.rev + 2, forgotten: reduced })
      const [left] = yield* sql`SELECT count(*)::int AS snapshots FROM choir_control.session_snapshots
        WHERE session_id = ${session_id}`
      assert.deepStrictEqual(left, { snapshots: 0 })
    }).pipe(Effect.provide(stores))
  )
})
