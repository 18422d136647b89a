import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Queue, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, InboxId, JobName, ResourceName } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import {
  BINDINGS,
  DESK,
  message,
  newAgent,
  newTalk,
  notice,
  PHONE,
  reply,
  stores,
  Talk,
  userMsg
} from "../../support/stores.ts"

const [BOT, TERMINAL] = [ResourceName.make("bot"), ResourceName.make("terminal")]

const from = (talk: Talk, client_id: string, dm: ResourceName, gateway: ResourceName) =>
  Effect.gen(function* () {
    const received = yield* (yield* Inbox).receive({
      ...message(talk.caller.agent_id, client_id),
      dm,
      gateway
    })
    return received.type === "queued" ? received.inbox_id : InboxId.make("1")
  })

const boundTo = (dm: ResourceName) =>
  Effect.gen(function* () {
    const { agent_id, session_id } = yield* (yield* SessionStore).create(newAgent(), { ...BINDINGS, dm }, "0000000")
    return new Talk(session_id, agent_id)
  })

/** What waits for people, of one session. */
const outbox = (talk: Talk) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`SELECT source, source_id, part, gateway, dm, agent_id, kind, left(text, 20) AS text, in_reply_to::text
      FROM choir_control.outbox WHERE session_id = ${talk.caller.session_id} ORDER BY outbox_id`
  )

const answering = (inbox_id: InboxId, text: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "notice", text, in_reply_to: inbox_id }
})

describeStores("What follows from events", (it) => {
  it.effect("is told when the events are sent again, since nobody may have heard of their commit (R3)", () =>
    Effect.gen(function* () {
      const [store, outbox] = [yield* EventStore, yield* Outbox]
      const talk = yield* newTalk
      const told = yield* Queue.bounded<string>(4)
      yield* outbox.wakes(DESK).pipe(
        Stream.mapEffect(() => outbox.undelivered(DESK, undefined)),
        Stream.flattenIterable,
        Stream.filter(({ agent_id }) => agent_id === talk.caller.agent_id),
        Stream.runForEach(({ text }) => Queue.offer(told, text)),
        Effect.forkScoped
      )
      talk.commit(notice("heard"))
      yield* store.append(talk.caller, talk.heartbeat(0))
      assert.strictEqual(yield* Queue.take(told), "heard")
      talk.commit(notice("unheard"))
      // Stores over the same tables, whose wakes reach nobody here.
      yield* Effect.flatMap(EventStore, (other) => other.append(talk.caller, talk.heartbeat(1))).pipe(
        Effect.provide(Layer.fresh(stores))
      )
      yield* store.append(talk.caller, talk.heartbeat(1))
      // Each wake tells all that is undelivered, and the first message may have been told more than once.
      yield* Effect.repeat(Queue.take(told), { until: (text) => text === "unheard" })
    }).pipe(Effect.provide(stores))
  )

  it.effect("is a reply where the message came from, and a notice where the session is bound (D6)", () =>
    Effect.gen(function* () {
      const [store, inbox] = [yield* EventStore, yield* Inbox]
      const talk = yield* boundTo(DESK)
      const { agent_id, session_id } = talk.caller
      const id = yield* from(talk, "a", PHONE, BOT)
      talk.turn(id, "answer").commit(notice("note"))
      yield* store.append(talk.caller, talk.heartbeat(0))
      yield* store.append(talk.caller, talk.heartbeat(0))
      const row = { source: "event", part: 0, agent_id }
      assert.deepStrictEqual(yield* outbox(talk), [
        {
          ...row,
          source_id: `${session_id}:3`,
          gateway: "bot",
          dm: "phone",
          kind: "reply",
          text: "answer",
          in_reply_to: id
        },
        {
          ...row,
          source_id: `${session_id}:4`,
          gateway: "terminal",
          dm: "desk",
          kind: "notice",
          text: "note",
          in_reply_to: null
        }
      ])
      assert.strictEqual(yield* inbox.pending(agent_id), 0)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is a message with files where the person asked for the work, with the agent's words as the caption", () =>
    Effect.gen(function* () {
      const [store, queue] = [yield* EventStore, yield* Outbox]
      const talk = yield* boundTo(DESK)
      const id = yield* from(talk, "f", PHONE, BOT)
      const file = { path: ".choirtmp/send/a.pdf", sha256: "a".repeat(64), bytes: 3 }
      const sends = (payload: object): EventDraft => ({
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "notice", files: [file], ...payload }
      })
      talk.commit(userMsg(id), sends({ text: "here", in_reply_to: id }), sends({}))
      yield* store.append(talk.caller, talk.heartbeat(0))
      const rows = (yield* outbox(talk)).map(({ dm, kind, text }) => [dm, kind, text])
      assert.deepStrictEqual(rows, [
        ["phone", "notice", "here"],
        ["desk", "notice", ""]
      ])
      const asked = (yield* queue.undelivered(PHONE, undefined)).find(({ text }) => text === "here")
      assert.deepStrictEqual(asked?.form, { files: { workspace: "main", items: [file] } })
      assert.include(yield* queue.withFiles, asked?.outbox_id)
      yield* queue.delivered([asked?.outbox_id ?? ""])
      assert.notInclude(yield* queue.withFiles, asked?.outbox_id)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is one line at most on a job that runs, and none once its end is told", () =>
    Effect.gen(function* () {
      const [store, queue] = [yield* EventStore, yield* Outbox]
      const talk = yield* boundTo(DESK)
      const texts = Effect.map(outbox(talk), (rows) => rows.map(({ source_id, text }) => [source_id, text]))
      const line = (job: string, text: string): EventDraft => ({
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "notice", text, job: JobName.make(job) }
      })
      const id = yield* from(talk, "a", DESK, TERMINAL)
      const { session_id } = talk.caller
      talk.commit(userMsg(id), line("dig", "dig: 1"), line("sow", "sow: 1"), notice("other"))
      yield* store.append(talk.caller, talk.heartbeat(0))
      assert.deepStrictEqual(yield* texts, [
        [`${session_id}:2:dig`, "dig: 1"],
        [`${session_id}:3:sow`, "sow: 1"],
        [`${session_id}:4`, "other"]
      ])
      talk.commit(line("dig", "dig: 2"))
      yield* store.append(talk.caller, talk.heartbeat(4))
      assert.deepStrictEqual(
        (yield* texts).map(([, text]) => text),
        ["sow: 1", "other", "dig: 2"]
      )
      // One that was read stays what it is.
      const read = (yield* queue.undelivered(DESK, undefined)).filter(({ text }) => text === "dig: 2")
      yield* queue.delivered(read.map(({ outbox_id }) => outbox_id))
      talk.commit({
        event_type: "AgentMessage",
        lane: EDGE,
        payload: {
          kind: "reply",
          text: "done",
          in_reply_to: id,
          job: JobName.make("sow"),
          facts: "sow completed"
        }
      })
      yield* store.append(talk.caller, talk.heartbeat(5))
      assert.deepStrictEqual(
        (yield* texts).map(([, text]) => text),
        ["other", "dig: 2", "done\n\nsow completed"]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("never leads to the DM of another agent's message, whatever id an agent names", () =>
    Effect.gen(function* () {
      const [store, inbox] = [yield* EventStore, yield* Inbox]
      const [talk, victim] = [yield* boundTo(DESK), yield* boundTo(PHONE)]
      const id = yield* from(victim, "a", PHONE, BOT)
      talk.commit(userMsg(id), reply(id, "x"), answering(id, "y"), answering(InboxId.make("9".repeat(18)), "z"))
      assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(0))).action, "OK")
      assert.deepStrictEqual(
        (yield* outbox(talk)).map((row) => [row["text"], row["dm"], row["gateway"]]),
        ["x", "y", "z"].map((text) => [text, "desk", "terminal"])
      )
      assert.strictEqual(yield* inbox.pending(victim.caller.agent_id), 1)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is one row, which Telegram splits when it is sent, and none on Telegram where nothing is said (R43)", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const [phone, desk] = [yield* boundTo(PHONE), yield* boundTo(DESK)]
      const long = `${"a".repeat(4000)}\n${"b".repeat(4000)}`
      const silent: EventDraft = { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice" } }
      for (const talk of [phone, desk]) {
        talk.commit(notice(long), silent, notice(" \n"))
        yield* store.append(talk.caller, talk.heartbeat(0))
      }
      assert.deepStrictEqual(
        (yield* outbox(phone)).map((row) => [row["part"], row["text"]]),
        [[0, "a".repeat(20)]]
      )
      assert.deepStrictEqual(
        (yield* outbox(desk)).map((row) => row["part"]),
        [0, 0]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("wakes who reads the DM, once it can be read", () =>
    Effect.gen(function* () {
      const [store, told] = [yield* EventStore, yield* Outbox]
      const talk = yield* boundTo(DESK)
      const found = yield* told.wakes(DESK).pipe(
        Stream.mapEffect(() => told.undelivered(DESK, undefined)),
        Stream.flattenIterable,
        Stream.filter(({ source_id }) => source_id === `${talk.caller.session_id}:1`),
        Stream.runHead,
        Effect.forkChild({ startImmediately: true })
      )
      talk.commit(notice("here"))
      yield* store.append(talk.caller, talk.heartbeat(0))
      assert.strictEqual(Option.getOrThrow(yield* Fiber.join(found)).text, "here")
    }).pipe(Effect.provide(stores))
  )

  it.effect("is nothing at all when the request is refused", () =>
    Effect.gen(function* () {
      const [store, inbox] = [yield* EventStore, yield* Inbox]
      const talk = yield* newTalk
      const id = yield* from(talk, "a", DESK, TERMINAL)
      talk.turn(id, "answer").commit(reply(id))
      assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(0))).action, "CONFLICT")
      assert.deepStrictEqual(yield* outbox(talk), [])
      assert.strictEqual(yield* inbox.pending(talk.caller.agent_id), 1)
    }).pipe(Effect.provide(stores))
  )
})
