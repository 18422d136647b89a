import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Inbox, INBOX_PENDING_MAX } from "#src/choird/queues/Inbox.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, message, newAgent, stores } from "../../support/stores.ts"

describeStores("Inbox", (it) => {
  it.effect("stores a message once, and answers its first row again", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const agent_id = newAgent()
      const first = yield* inbox.receive(message(agent_id, "a"))
      const second = yield* inbox.receive(message(agent_id, "b"))
      assert.deepInclude(first, { type: "queued", position: 0 })
      assert.deepInclude(second, { type: "queued", position: 1 })
      assert.deepStrictEqual(yield* inbox.receive(message(agent_id, "a", "changed")), first)
      assert.deepStrictEqual(yield* inbox.receive(message(agent_id, "b")), second)
      const racing = yield* Effect.all(
        Array.from({ length: 5 }, () => inbox.receive(message(agent_id, "c"))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(new Set(racing.map((received) => JSON.stringify(received))).size, 1)
      assert.strictEqual(yield* inbox.pending(agent_id), 3)
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "wakes the agent for a message that is asked for again, since nobody may have heard of its commit (R3)",
    () =>
      Effect.gen(function* () {
        const [inbox, sessions, signals] = [yield* Inbox, yield* SessionStore, yield* Signals]
        const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
        const told = yield* Queue.bounded<string>(4)
        yield* inbox.receive(message(agent_id, "a", "first"))
        yield* signals.stream(session_id, undefined).pipe(
          Stream.runForEach(({ signal }) =>
            Queue.offer(told, signal.type === "UserMessage" ? signal.text : signal.type)
          ),
          Effect.forkScoped
        )
        assert.strictEqual(yield* Queue.take(told), "first")
        // Stores over the same tables, whose wakes reach nobody here.
        yield* Effect.flatMap(Inbox, (other) => other.receive(message(agent_id, "b", "unheard"))).pipe(
          Effect.provide(Layer.fresh(stores))
        )
        yield* inbox.receive(message(agent_id, "b", "unheard"))
        assert.strictEqual(yield* Queue.take(told), "unheard")
      }).pipe(Effect.provide(stores))
  )

  it.effect("wakes who waits for a message to an agent without a session, also for one that is asked for again", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const agent_id = newAgent()
      const looks = yield* Queue.bounded<number>(4)
      yield* inbox.wakes(agent_id).pipe(
        Stream.mapEffect(() => inbox.pending(agent_id)),
        Stream.runForEach((pending) => Queue.offer(looks, pending)),
        Effect.forkScoped
      )
      assert.strictEqual(yield* Queue.take(looks), 0)
      yield* inbox.receive(message(agent_id, "a"))
      assert.strictEqual(yield* Queue.take(looks), 1)
      // A store over the same tables, whose wakes reach nobody here.
      yield* Effect.flatMap(Inbox, (other) => other.receive(message(agent_id, "b"))).pipe(
        Effect.provide(Layer.fresh(stores))
      )
      yield* inbox.receive(message(agent_id, "b"))
      assert.strictEqual(yield* Queue.take(looks), 2)
    }).pipe(Effect.provide(stores))
  )

  it.effect("tells the agent which messages hold somebody else's words", () =>
    Effect.gen(function* () {
      const [inbox, sessions, signals] = [yield* Inbox, yield* SessionStore, yield* Signals]
      const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
      yield* inbox.receive({ ...message(agent_id, "a"), forwarded: true })
      yield* inbox.receive(message(agent_id, "b"))
      const pushed = yield* signals.stream(session_id, undefined).pipe(Stream.take(2), Stream.runCollect)
      assert.deepStrictEqual(
        pushed.map(({ signal }) => "forwarded" in signal && signal.forwarded),
        [true, false]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("replaces what neither Postgres nor an event can hold", () =>
    Effect.gen(function* () {
      const [inbox, sessions, signals] = [yield* Inbox, yield* SessionStore, yield* Signals]
      const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
      const attachment = { path: "a", name: "x\0", mime: "text/plain", bytes: 1 }
      yield* inbox.receive({ ...message(agent_id, "a", "x\0\uD800y"), attachments: [attachment] })
      const [pushed] = yield* signals.stream(session_id, undefined).pipe(Stream.take(1), Stream.runCollect)
      const signal = pushed?.signal.type === "UserMessage" ? pushed.signal : undefined
      assert.strictEqual(signal?.text, "x\uFFFD\uFFFDy")
      assert.deepStrictEqual(signal?.attachments, [{ ...attachment, name: "x\uFFFD" }])
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    `refuses the message after ${INBOX_PENDING_MAX} that wait, for that agent alone (R45)`,
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox
        const [agent_id, other] = [newAgent(), newAgent()]
        const many = Array.from({ length: INBOX_PENDING_MAX + 1 }, (_, index) => message(agent_id, String(index)))
        const received = yield* inbox.receiveAll(many)
        assert.deepInclude(received.at(-2), { type: "queued", position: INBOX_PENDING_MAX - 1 })
        assert.deepStrictEqual(received.at(-1), { type: "full", pending: INBOX_PENDING_MAX })
        assert.deepStrictEqual(yield* inbox.receive(message(agent_id, "late")), received.at(-1))
        assert.deepStrictEqual(yield* inbox.receive(message(agent_id, "0")), received[0])
        assert.deepInclude(yield* inbox.receive(message(other, "a")), { position: 0 })
      }).pipe(Effect.provide(stores)),
    { timeout: 300_000 }
  )

  it.effect("stores a bot's messages in order, each once (R42)", () =>
    Effect.gen(function* () {
      const [inbox, sessions, signals] = [yield* Inbox, yield* SessionStore, yield* Signals]
      const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
      const reader = yield* signals
        .stream(session_id, undefined)
        .pipe(Stream.take(3), Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      yield* inbox.receiveAll([message(agent_id, "1", "one"), message(agent_id, "2", "two")])
      yield* inbox.receiveAll([message(agent_id, "2", "two"), message(agent_id, "3", "three")])
      const texts = (yield* Fiber.join(reader)).map(({ signal }) => (signal.type === "UserMessage" ? signal.text : ""))
      assert.deepStrictEqual(texts, ["one", "two", "three"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("says of a repeated message that its agent has it", () =>
    Effect.gen(function* () {
      const [inbox, sql] = [yield* Inbox, yield* SqlClient.SqlClient]
      const agent_id = newAgent()
      const one = { ...message(agent_id, "1"), message_id: 7 }
      const first = yield* inbox.receive(one)
      const { inbox_id } = first as Extract<typeof first, { readonly type: "queued" }>
      yield* sql`UPDATE choir_control.inbox SET acked_rev = 3 WHERE inbox_id = ${inbox_id}::bigint`
      assert.deepInclude(yield* inbox.receive(one), { inbox_id, taken: true })
    }).pipe(Effect.provide(stores))
  )

  it.effect("stores a batch wholly or not at all", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const agent_id = newAgent()
      const unstorable = { ...message(agent_id, "2"), client_id: "a\0b" }
      const failed = yield* Effect.exit(inbox.receiveAll([message(agent_id, "1"), unstorable]))
      assert.strictEqual(failed._tag, "Failure")
      assert.strictEqual(yield* inbox.pending(agent_id), 0)
    }).pipe(Effect.provide(stores))
  )

  it.effect("serves gateways that send to the same agents in different orders", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const agents = Array.from({ length: 4 }, newAgent)
      const batch = (gateway: string, ids: typeof agents) =>
        inbox.receiveAll(ids.map((agent_id) => message(agent_id, gateway)))
      yield* Effect.all(
        [batch("x", agents), batch("y", agents.toReversed()), batch("z", agents), batch("w", agents.toReversed())],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(yield* Effect.forEach(agents, inbox.pending), [4, 4, 4, 4])
    }).pipe(Effect.provide(stores))
  )
})
