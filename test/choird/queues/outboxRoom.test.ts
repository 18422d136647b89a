import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft, EventOf } from "#schema/Event.ts"
import { EDGE, InboxId, JobName, ResourceName, Sha256 } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import {
  type Room,
  UNASKED_BYTES_MAX,
  UNASKED_ROWS_MAX,
  UNDELIVERED_BYTES_MAX,
  UNDELIVERED_ROWS_MAX,
  withRoom
} from "#src/choird/queues/outboxRoom.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { describeStores } from "../../support/engines.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { BINDINGS, DESK, message, newTalk, notice, PHONE, stores, Talk } from "../../support/stores.ts"

describe("the room for messages that nobody has read", () => {
  const said = (text: string, room: Room = "news", dm = DESK) => ({ dm, text, room })
  const at = (rows: number, bytes: number) => new Map([[DESK, { rows, bytes }]])

  it("is bounded in rows and in bytes, and a message that answers nobody is counted beyond it", () => {
    const [a, b] = [said("aa"), said("b")]
    assert.deepStrictEqual(withRoom(at(UNASKED_ROWS_MAX - 1, 0), [a, b]), { taken: [a], beyond: [b] })
    assert.deepStrictEqual(withRoom(at(0, UNASKED_BYTES_MAX - 1), [a, b]), { taken: [b], beyond: [a] })
  })

  it("is larger for answers, and a request whose answer has none is refused whole", () => {
    const [asked, unasked] = [said("ü", "answer"), said("b")]
    const full = at(UNASKED_ROWS_MAX, UNASKED_BYTES_MAX)
    assert.deepStrictEqual(withRoom(full, [unasked, asked]), { taken: [asked], beyond: [unasked] })
    assert.isUndefined(withRoom(at(UNDELIVERED_ROWS_MAX, 0), [unasked, asked]))
    assert.isUndefined(withRoom(at(0, UNDELIVERED_BYTES_MAX - 1), [asked]))
    assert.deepStrictEqual(withRoom(at(0, UNDELIVERED_BYTES_MAX - 2), [asked]), { taken: [asked], beyond: [] })
  })

  it("is as large for files that nobody asked for, which are counted beyond it and hold up no answer elsewhere", () => {
    const [file, asked] = [said("a", "files"), said("b", "answer", PHONE)]
    assert.deepStrictEqual(withRoom(at(UNASKED_ROWS_MAX, 0), [file, asked]), { taken: [file, asked], beyond: [] })
    assert.deepStrictEqual(withRoom(at(UNDELIVERED_ROWS_MAX, 0), [file, asked]), { taken: [asked], beyond: [file] })
  })

  it("is each DM's own", () => {
    const [desk, phone, asked] = [said("a"), said("b", "news", PHONE), said("c", "answer", PHONE)]
    assert.deepStrictEqual(withRoom(at(UNDELIVERED_ROWS_MAX, 0), [desk, phone, asked]), {
      taken: [phone, asked],
      beyond: [desk]
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

/** The notice that counts messages of a session. */
const told = ({ caller: { agent_id, session_id } }: Talk, count: number) =>
  `${count} further ${count === 1 ? "message" : "messages"} from ${agent_id} ${count === 1 ? "is" : "are"} not shown here, because too many of its messages are unread. The log has them all: choirctl session events ${session_id}`

/** A notice with more than its words. */
const noticeWith = (payload: Partial<EventOf<"AgentMessage">["payload"]>): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "notice", ...payload }
})

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
      yield* fill(talk, UNASKED_ROWS_MAX - 1)
      talk.commit(notice("fits"), notice("one"), notice("two"))
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(0)), { action: "OK", ack_rev: 3 })
      assert.deepStrictEqual(yield* textsOf(talk), ["fits", told(talk, 2)])
      talk.commit(notice("three"))
      // A repeated request counts nothing twice.
      for (const _ of [1, 2])
        assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(3)), { action: "OK", ack_rev: 4 })
      assert.deepStrictEqual(yield* textsOf(talk), ["fits", told(talk, 3)])
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
        assert.deepStrictEqual(yield* crowded, [{ agent_id, dm: DESK, count: UNDELIVERED_ROWS_MAX }])
        yield* readAll(talk)
        assert.deepInclude(yield* again, { action: "OK", ack_rev: 6 })
        assert.deepStrictEqual(yield* textsOf(talk), ["the next"])
        assert.strictEqual(yield* inbox.pending(agent_id), 0)
      }).pipe(Effect.provide(stores))
  )

  it.effect("shows what somebody asked for, and all that goes to a DM where its messages are read", () =>
    Effect.gen(function* () {
      const [store, inbox] = [yield* EventStore, yield* Inbox]
      const talk = yield* newTalk
      const { agent_id } = talk.caller
      const receive = (client_id: string, place: object) =>
        Effect.map(inbox.receive({ ...message(agent_id, client_id), ...place }), (received) =>
          InboxId.make(received.type === "queued" ? received.inbox_id : "")
        )
      const desk = yield* receive("at the desk", {})
      const phone = yield* receive("on the phone", { gateway: ResourceName.make("bot"), dm: PHONE })
      yield* fill(talk, UNASKED_ROWS_MAX)
      const job = JobName.make("build")
      talk.turn(desk).turn(phone)
      talk.commit(
        noticeWith({ text: "in doubt", in_reply_to: desk }),
        noticeWith({ text: "files", files: [{ path: "a", bytes: 1, sha256: Sha256.make("0".repeat(64)) }] }),
        noticeWith({ text: "line at the desk", job, in_reply_to: desk }),
        noticeWith({ text: "line on the phone", job, in_reply_to: phone })
      )
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(0)), { action: "OK" })
      assert.deepStrictEqual(yield* textsOf(talk), [
        "done",
        "done",
        "in doubt",
        "files",
        "line on the phone",
        told(talk, 1)
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps the unread line on a job until the next one, which takes its place", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = yield* newTalk
      const job = JobName.make("build")
      yield* fill(talk, UNASKED_ROWS_MAX - 1)
      talk.commit(noticeWith({ text: "first", job }))
      yield* store.append(talk.caller, talk.heartbeat(0))
      talk.commit(noticeWith({ text: "second", job }))
      yield* store.append(talk.caller, talk.heartbeat(1))
      assert.deepStrictEqual(yield* textsOf(talk), ["second"])
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE choir_control.outbox SET source_id = 'more-' || source_id WHERE text = 'x'`
      yield* fill(talk, 1)
      talk.commit(noticeWith({ text: "third", job }))
      yield* store.append(talk.caller, talk.heartbeat(2))
      assert.deepStrictEqual(yield* textsOf(talk), ["second", told(talk, 1)])
    }).pipe(Effect.provide(stores))
  )

  it.effect("has the messages of each session counted beside the log that has them", () =>
    Effect.gen(function* () {
      const [store, sessions] = [yield* EventStore, yield* SessionStore]
      const earlier = yield* newTalk
      yield* fill(earlier, UNASKED_ROWS_MAX)
      earlier.commit(notice("one"), notice("two"))
      yield* store.append(earlier.caller, earlier.heartbeat(0))
      const { agent_id } = earlier.caller
      yield* sessions.end(earlier.caller.session_id, "closed")
      const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
      const later = new Talk(session_id, agent_id)
      later.commit(notice("three"))
      yield* store.append(later.caller, later.heartbeat(0))
      assert.deepStrictEqual(yield* textsOf(earlier), [told(earlier, 2), told(later, 1)])
    }).pipe(Effect.provide(stores))
  )
})
