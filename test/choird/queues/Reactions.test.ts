import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, type InboxId, ResourceName } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, message, modelOutput, newAgent, reply, stores, Talk, userMsg } from "../../support/stores.ts"

const start = Effect.forkChild({ startImmediately: true })

let chats = 0

/** A session at a DM of its own, and a message of this many pieces to it. */
const messaged = Effect.fnUntraced(function* (pieces = 1) {
  chats += 1
  const dm = ResourceName.make(`chat-${chats}`)
  const { agent_id, session_id } = yield* (yield* SessionStore).create(newAgent(), { ...BINDINGS, dm }, "0000000")
  const inbox = yield* Inbox
  const join = { sender: "1", key: "text", text: "piece", glue: "", quiet_ms: 1500 }
  const ids: Array<InboxId> = []
  for (let piece = 0; piece < pieces; piece += 1) {
    const place = { dm, message_id: 70 + piece, ...(pieces === 1 ? {} : { join }) }
    const received = yield* inbox.receive({ ...message(agent_id, String(piece)), ...place })
    if (received.type === "queued") ids.push(received.inbox_id)
  }
  const [id] = ids
  assert.isDefined(id)
  assert.deepStrictEqual(new Set(ids), new Set([id]))
  return { dm, id, talk: new Talk(session_id, agent_id) }
})

const notice = (in_reply_to: InboxId): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "notice", text: "still at it", in_reply_to }
})

/** The agent's events up to now reach the store. */
const told = (talk: Talk, from: number) =>
  Effect.flatMap(EventStore, (store) => store.append(talk.caller, talk.heartbeat(from)))

describeStores("The reaction to a message", (it) => {
  it.effect("is noted once, at its first piece, and ends with the answer, which a notice is not", () =>
    Effect.gen(function* () {
      const reactions = yield* Reactions
      const { dm, id, talk } = yield* messaged(3)
      assert.strictEqual(yield* reactions.begin(id), 70)
      assert.isUndefined(yield* reactions.begin(id))
      talk.commit(userMsg(id), notice(id))
      yield* told(talk, 0)
      assert.deepStrictEqual(yield* reactions.leftover(dm), [])
      talk.commit(modelOutput("c-1"), reply(id))
      yield* told(talk, 2)
      const left = [{ inbox_id: id, message_id: 70 }]
      assert.deepStrictEqual(yield* reactions.leftover(dm), left)
      // The next life of choird knows it too.
      yield* Effect.flatMap(Reactions, (other) =>
        Effect.map(other.leftover(dm), (found) => assert.deepStrictEqual(found, left))
      ).pipe(Effect.provide(Layer.fresh(stores)))
      yield* reactions.ended(id)
      assert.deepStrictEqual(yield* reactions.leftover(dm), [])
      assert.isUndefined(yield* reactions.begin(id))
    }).pipe(Effect.provide(stores))
  )

  it.effect("are not noted for a message that was answered before or has no number", () =>
    Effect.gen(function* () {
      const reactions = yield* Reactions
      const { dm, id, talk } = yield* messaged()
      talk.turn(id)
      yield* told(talk, 0)
      assert.isUndefined(yield* reactions.begin(id))
      assert.deepStrictEqual(yield* reactions.leftover(dm), [])
      const received = yield* (yield* Inbox).receive(message(talk.caller.agent_id, "console"))
      assert.isUndefined(yield* reactions.begin(received.type === "queued" ? received.inbox_id : id))
    }).pipe(Effect.provide(stores))
  )

  it.effect("ends with no answer of another agent, and its chat hears of the end at once", () =>
    Effect.gen(function* () {
      const [outbox, reactions] = [yield* Outbox, yield* Reactions]
      const { dm, id, talk } = yield* messaged()
      const other = yield* messaged()
      yield* reactions.begin(id)
      other.talk.commit(userMsg(other.id), modelOutput("c-1"), reply(id))
      yield* Effect.ignore(told(other.talk, 0))
      assert.deepStrictEqual(yield* reactions.leftover(dm), [])
      const left = yield* outbox.wakes(dm).pipe(
        Stream.mapEffect(() => reactions.leftover(dm)),
        Stream.filter((rows) => rows.length > 0),
        Stream.take(1),
        Stream.runCollect,
        start
      )
      talk.turn(id, "")
      yield* told(talk, 0)
      assert.deepStrictEqual((yield* Fiber.join(left))[0], [{ inbox_id: id, message_id: 70 }])
    }).pipe(Effect.provide(stores))
  )
})
