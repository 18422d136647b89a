import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { logBytes } from "#src/choird/database/migrations/0017_log_bytes.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { LOG_FULL_ROOM_BYTES } from "#src/choird/sessions/logLimit.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { newTalk, stores, type Talk } from "../../support/stores.ts"

const LIMIT_BYTES = 4096 * 1024 ** 2

const rowOf = ({ caller }: Talk) =>
  Effect.flatMap(SessionStore, ({ get }) => Effect.map(get(caller.session_id), Option.getOrThrow))

const bytesOf = ({ links }: Talk) => links.reduce((sum, { bytes }) => sum + bytes, 0)

describeStores("the size of a session's log", (it) => {
  it.effect("is counted once for each stored event, however often it is sent", () =>
    Effect.gen(function* () {
      const { append } = yield* EventStore
      const talk = (yield* newTalk).turn(1)
      yield* append(talk.caller, talk.heartbeat(0))
      yield* append(talk.caller, talk.heartbeat(0))
      talk.turn(2)
      yield* append(talk.caller, talk.heartbeat(1))
      assert.strictEqual((yield* rowOf(talk)).log_bytes, bytesOf(talk))
    }).pipe(Effect.provide(stores))
  )

  it.effect("takes the rest of an agent that is told to stop, and nothing beyond that room", () =>
    Effect.gen(function* () {
      const { append, verify } = yield* EventStore
      const sql = yield* SqlClient.SqlClient
      const talk = (yield* newTalk).turn(1)
      const hold = (log_bytes: number) =>
        sql`UPDATE choir_control.sessions SET log_bytes = ${log_bytes} WHERE session_id = ${talk.caller.session_id}`
      yield* hold(LIMIT_BYTES)
      assert.deepInclude(yield* append(talk.caller, talk.heartbeat(0)), { action: "OK", ack_rev: 3 })
      yield* hold(LIMIT_BYTES + LOG_FULL_ROOM_BYTES)
      talk.turn(2)
      assert.deepInclude(yield* append(talk.caller, talk.heartbeat(3)), { action: "CONFLICT", ack_rev: 3 })
      assert.deepInclude(yield* verify(talk.caller.session_id), { ok: true, events: 3 })
      const { frozen_reason, log_bytes } = yield* rowOf(talk)
      assert.deepStrictEqual(
        { frozen_reason, log_bytes },
        { frozen_reason: null, log_bytes: LIMIT_BYTES + LOG_FULL_ROOM_BYTES }
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("is counted by the migration for the sessions that were there before it", () =>
    Effect.gen(function* () {
      const { append } = yield* EventStore
      const sql = yield* SqlClient.SqlClient
      const talk = (yield* newTalk).turn(1)
      yield* append(talk.caller, talk.heartbeat(0))
      yield* sql`ALTER TABLE choir_control.sessions DROP COLUMN log_bytes`
      yield* logBytes
      assert.strictEqual((yield* rowOf(talk)).log_bytes, bytesOf(talk))
    }).pipe(Effect.provide(stores))
  )
})
