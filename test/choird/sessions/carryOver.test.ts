/** The message that a session leaves to the next one, and the summary with which that one begins (D58). */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { type AgentId, EDGE, InboxId, type SessionId } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, message, newTalk, stores, userMsg } from "../../support/stores.ts"

const SUMMARY = { title: "Plans", summary: "Ada plans a trip.", decisions: [], open_points: [], facts: [] }

/** What the agent of a session would hear now. */
const heard = (session_id: SessionId, count: number) =>
  Effect.flatMap(Signals, ({ stream }) =>
    stream(session_id, undefined).pipe(Stream.take(count), Stream.runCollect)
  ).pipe(Effect.map((pushed) => pushed.map(({ signal }) => signal)))

const receive = (agent_id: AgentId, client_id: string, text: string) =>
  Effect.flatMap(Inbox, (inbox) =>
    Effect.map(inbox.receive(message(agent_id, client_id, text)), (received) =>
      received.type === "queued" ? received.inbox_id : InboxId.make("0")
    )
  )

const limitEnd = (carried: InboxId, more: object = {}): EventDraft => ({
  event_type: "Cancelled",
  lane: EDGE,
  payload: { target: EDGE, by: "budget", reason: "the limit is reached", carried, ...more }
})

/** A session that took two messages, answered the first, and ended at its limit. */
const ended = Effect.fnUntraced(function* (more: object = {}) {
  const events = yield* EventStore
  const sessions = yield* SessionStore
  const talk = yield* newTalk
  const { agent_id, session_id } = talk.caller
  const first = yield* receive(agent_id, "1", "the train")
  const second = yield* receive(agent_id, "2", "the hotel")
  const third = yield* receive(agent_id, "3", "the weather")
  talk.turn(first).commit(userMsg(second)).commit(limitEnd(second, more))
  const reply = yield* events.append(talk.caller, talk.heartbeat(0))
  assert.strictEqual(reply.action, "OK")
  // A repeated heartbeat, as after a lost answer, changes nothing.
  yield* events.append(talk.caller, talk.heartbeat(0))
  yield* sessions.summarize(session_id, SUMMARY)
  return { agent_id, ids: [second, third], session_id }
})

describeStores("A session at its limit", (it) => {
  it.effect(
    "leaves its unanswered message to the next session, before those that wait, and its summary before both",
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox
        const sessions = yield* SessionStore
        const { agent_id, ids, session_id } = yield* ended()
        assert.strictEqual(yield* inbox.pending(agent_id), 2)
        yield* sessions.end(session_id, "closed")
        const next = yield* sessions.create(agent_id, BINDINGS, "0000000", true)
        const [summary, ...messages] = yield* heard(next.session_id, 3)
        assert.deepInclude(summary, { type: "Continue", session_id, summary: SUMMARY })
        assert.deepStrictEqual(
          messages.map((signal) => (signal.type === "UserMessage" ? [signal.inbox_id, signal.carried ?? false] : [])),
          [
            [ids[0], true],
            [ids[1], false]
          ]
        )
      }).pipe(Effect.provide(stores))
  )

  it.effect("keeps the message for the next session while it still runs, whatever comes or crashes meanwhile", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const sessions = yield* SessionStore
      const { agent_id, ids, session_id } = yield* ended()
      yield* receive(agent_id, "4", "and a taxi")
      // The agent died before its goodbye: the session is resumed, and only says goodbye.
      yield* sessions.resume(session_id, BINDINGS, "0000000")
      const left = yield* heard(session_id, 2)
      assert.isFalse(left.some((signal) => signal.type === "UserMessage" && signal.inbox_id === ids[0]))
      yield* sessions.end(session_id, "closed")
      const next = yield* sessions.create(agent_id, BINDINGS, "0000000", true)
      const texts = (yield* heard(next.session_id, 4)).map((signal) =>
        signal.type === "UserMessage" ? signal.text : ""
      )
      assert.deepStrictEqual(texts, ["", "the hotel", "the weather", "and a taxi"])
      assert.strictEqual(yield* inbox.pending(agent_id), 3)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is not continued where a person asked for a new conversation, or for a fresh start", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      for (const how of ["order", "chat", "fresh"] as const) {
        const { agent_id, session_id } = yield* ended(how === "order" ? { signal_id: "999999" } : {})
        yield* sessions.end(session_id, "closed")
        if (how === "chat") yield* sessions.continueNothing(agent_id)
        const next = yield* sessions.create(agent_id, BINDINGS, "0000000", how !== "fresh")
        const [first] = yield* heard(next.session_id, 1)
        assert.deepInclude(first, { type: "UserMessage", text: "the hotel" })
      }
    }).pipe(Effect.provide(stores))
  )

  it.effect("cannot leave a message that is not open", () =>
    Effect.gen(function* () {
      const events = yield* EventStore
      const talk = yield* newTalk
      const first = yield* receive(talk.caller.agent_id, "1", "the train")
      talk.turn(first).commit(limitEnd(first))
      assert.strictEqual((yield* events.append(talk.caller, talk.heartbeat(0))).action, "CONFLICT")
    }).pipe(Effect.provide(stores))
  )
})
