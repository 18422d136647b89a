import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import {
  UNASKED_BYTES_MAX,
  UNASKED_ROWS_MAX,
  UNDELIVERED_BYTES_MAX,
  UNDELIVERED_ROWS_MAX,
  withRoom
} from "#src/choird/queues/outboxRoom.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { describeStores } from "../../support/engines.ts"
import { DESK, message, newTalk, notice, stores, type Talk } from "../../support/stores.ts"

describe("the room for messages that nobody has read", () => {
  const said = (text: string, answers = false) => ({ text, answers })

  it("is bounded in rows and in bytes, and a message that answers nobody is counted beyond it", () => {
    const [a, b] = [said("aa"), said("b")]
    assert.deepStrictEqual(withRoom({ rows: UNASKED_ROWS_MAX - 1, bytes: 0 }, [a, b]), { taken: [a], beyond: [b] })
    assert.deepStrictEqual(withRoom({ rows: 0, bytes: UNASKED_BYTES_MAX - 1 }, [a, b]), { taken: [b], beyond: [a] })
  })

  it("is larger for answers, and a request whose answer has none is refused whole", () => {
    const [asked, unasked] = [said("ü", true), said("b")]
    const full = { rows: UNASKED_ROWS_MAX, bytes: UNASKED_BYTES_MAX }
    assert.deepStrictEqual(withRoom(full, [unasked, asked]), { taken: [asked], beyond: [unasked] })
    assert.isUndefined(withRoom({ rows: UNDELIVERED_ROWS_MAX, bytes: 0 }, [unasked, asked]))
    assert.isUndefined(withRoom({ rows: 0, bytes: UNDELIVERED_BYTES_MAX - 1 }, [asked]))
    assert.deepStrictEqual(withRoom({ rows: 0, bytes: UNDELIVERED_BYTES_MAX - 2 }, [asked]), {
      taken: [asked],
      beyond: []
    })
  })
})

/** So many rows of an agent wait at the desk, as if events had made them. */
const fill = ({ caller: { agent_id, session_id } }: Talk, count: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`INSERT INTO choir_control.outbox
      (source, source_id, part, gateway, dm, agent_id, session_id, kind, text)
      SELECT 'event', ${session_id} || ':fill-' || i, 0, 'terminal', ${DESK}, ${agent_id}, ${session_id}, 'notice', 'x'
      FROM generate_series(1, ${count}) AS i`
  )

/** The texts of an agent's undelivered rows that the test did not fill in. */
const textsOf = ({ caller: { agent_id } }: Talk) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox WHERE agent_id = ${agent_id}
        AND delivered_at IS NULL AND text <> 'x' ORDER BY outbox_id`,
      (rows) => rows.map(({ text }) => text)
    )
  )

const readAll = ({ caller: { agent_id } }: Talk) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE choir_control.outbox SET delivered_at = now() WHERE agent_id = ${agent_id}`
  )

describeStores("An agent whose messages nobody reads", (it) => {
  it.effect("has its further notices counted in one, which names the log that has them", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = yield* newTalk
      const { session_id, agent_id } = talk.caller
      const told = (count: number) =>
        `${count} further messages of ${agent_id} are not shown here, because too many of its messages are unread. The log has them all: choirctl session events ${session_id}`
      yield* fill(talk, UNASKED_ROWS_MAX - 1)
      talk.commit(notice("fits"), notice("one"), notice("two"))
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(0)), { action: "OK", ack_rev: 3 })
      assert.deepStrictEqual(yield* textsOf(talk), ["fits", told(2)])
      talk.commit(notice("three"))
      // A repeated request counts nothing twice.
      for (const _ of [1, 2])
        assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(3)), { action: "OK", ack_rev: 4 })
      assert.deepStrictEqual(yield* textsOf(talk), ["fits", told(3)])
      yield* readAll(talk)
      talk.commit(notice("four"))
      yield* store.append(talk.caller, talk.heartbeat(4))
      assert.deepStrictEqual(yield* textsOf(talk), ["four"])
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "answers a person all the same, and waits with an answer that has no room either until somebody reads",
    () =>
      Effect.gen(function* () {
        const [store, inbox, outbox] = [yield* EventStore, yield* Inbox, yield* Outbox]
        const talk = yield* newTalk
        const { agent_id } = talk.caller
        const ask = (client_id: string) =>
          Effect.map(inbox.receive(message(agent_id, client_id)), (received) =>
            received.type === "queued" ? received.inbox_id : ""
          )
        yield* fill(talk, UNASKED_ROWS_MAX)
        talk.turn(yield* ask("first"), "the answer")
        assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(0)), { action: "OK", ack_rev: 3 })
        assert.deepStrictEqual(yield* textsOf(talk), ["the answer"])
        const crowded = Effect.map(outbox.crowded, (rows) => rows.filter((row) => row.agent_id === agent_id))
        assert.deepStrictEqual(yield* crowded, [])
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE choir_control.outbox SET source_id = 'more-' || source_id WHERE agent_id = ${agent_id}`
        yield* fill(talk, UNDELIVERED_ROWS_MAX - UNASKED_ROWS_MAX - 1)
        talk.turn(yield* ask("again"), "the next")
        const again = store.append(talk.caller, talk.heartbeat(3))
        assert.deepInclude(yield* again, { action: "BACKOFF", ack_rev: 3 })
        assert.deepInclude(yield* again, { action: "BACKOFF", ack_rev: 3 })
        assert.strictEqual(yield* inbox.pending(agent_id), 1)
        assert.deepStrictEqual(yield* crowded, [{ agent_id, count: UNDELIVERED_ROWS_MAX }])
        yield* readAll(talk)
        assert.deepInclude(yield* again, { action: "OK", ack_rev: 6 })
        assert.deepStrictEqual(yield* textsOf(talk), ["the next"])
        assert.strictEqual(yield* inbox.pending(agent_id), 0)
      }).pipe(Effect.provide(stores))
  )
})
