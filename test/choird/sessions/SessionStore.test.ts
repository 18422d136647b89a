import { assert } from "@effect/vitest"
import { Cause, Effect, Exit, Option, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { ResourceName, SessionId } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { FROZEN_REASON_CHARS_MAX, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, message, newAgent, rowOf, stores, Talk } from "../../support/stores.ts"

/** The texts that a session's agent would be told now. */
const told = (session_id: SessionId, count: number) =>
  Effect.flatMap(Signals, ({ stream }) =>
    stream(session_id, undefined).pipe(Stream.take(count), Stream.runCollect)
  ).pipe(
    Effect.map((pushed) => pushed.map(({ signal }) => (signal.type === "UserMessage" ? signal.text : signal.type)))
  )

describeStores("SessionStore", (it) => {
  it.effect("knows which session began last, also where the host's clock was set back before it (D19)", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const sql = yield* SqlClient.SqlClient
      const agent_id = newAgent()
      const first = yield* sessions.create(agent_id, BINDINGS, "0000001")
      yield* sql`UPDATE choir_control.sessions SET started_at = now() + interval '1 day'
        WHERE session_id = ${first.session_id}`
      yield* sessions.end(first.session_id, "stopped")
      const fresh = yield* sessions.create(agent_id, BINDINGS, "0000001")
      assert.strictEqual(Option.getOrThrow(yield* sessions.latest(agent_id)).session_id, fresh.session_id)
      yield* sessions.end(fresh.session_id, "stopped")
      assert.strictEqual(Option.getOrThrow(yield* sessions.latest(agent_id)).session_id, fresh.session_id)
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps a session through its epochs, and remembers only the newest container", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const agent_id = newAgent()
      const created = yield* sessions.create(agent_id, BINDINGS, "0000001")
      const { session_id } = created
      assert.deepInclude(created, {
        agent_id,
        status: "active",
        ended_at: null,
        resource_bindings: BINDINGS,
        epoch: 1,
        last_rev: 0,
        frozen_reason: null,
        image_version: "0000001",
        container: null
      })
      yield* sessions.recordContainer(session_id, 1, { pid: 7 })
      assert.deepStrictEqual(Option.getOrThrow(yield* sessions.get(session_id)).container, { pid: 7 })
      assert.deepStrictEqual(
        yield* sessions.active.pipe(Effect.map((all) => all.map((row) => row.session_id).includes(session_id))),
        true
      )
      yield* sessions.end(session_id, "crashed")
      const ended = Option.getOrThrow(yield* sessions.get(session_id))
      assert.strictEqual(ended.status, "crashed")
      assert.match(ended.ended_at ?? "", /^\d{4}-.*Z$/u)
      yield* sessions.end(session_id, "stopped")
      assert.strictEqual(Option.getOrThrow(yield* sessions.get(session_id)).ended_at, ended.ended_at)

      const other = { ...BINDINGS, dm: ResourceName.make("phone") }
      const resumed = yield* sessions.resume(session_id, other, "0000002")
      assert.deepInclude(resumed, {
        status: "active",
        ended_at: null,
        epoch: 2,
        resource_bindings: other,
        container: null
      })
      yield* sessions.recordContainer(session_id, 1, { pid: 8 })
      assert.isNull(Option.getOrThrow(yield* sessions.get(session_id)).container)
    }).pipe(Effect.provide(stores))
  )

  it.effect("lists an agent's sessions, the newest first", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const agent_id = newAgent()
      const ids: Array<SessionId> = []
      for (let count = 0; count < 3; count++) {
        const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
        yield* sessions.end(session_id, "closed")
        ids.unshift(session_id)
      }
      assert.deepStrictEqual(
        (yield* sessions.list(agent_id)).map(({ session_id }) => session_id),
        ids
      )
      assert.strictEqual(Option.getOrThrow(yield* sessions.latest(agent_id)).session_id, ids[0])
      assert.isTrue((yield* sessions.list()).length >= 3)
      assert.isTrue(Option.isNone(yield* sessions.latest(newAgent())))
      assert.isTrue(Option.isNone(yield* sessions.get(SessionId.make("0000000000000000"))))
    }).pipe(Effect.provide(stores))
  )

  it.effect("gives an agent one active session, also when two starts race (invariant 11)", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const agent_id = newAgent()
      const starts = yield* Effect.all(
        Array.from({ length: 4 }, () => Effect.exit(sessions.create(agent_id, BINDINGS, "0000000"))),
        { concurrency: "unbounded" }
      )
      const failures = starts.filter(Exit.isFailure).map(({ cause }) => Cause.pretty(cause))
      assert.strictEqual(failures.length, 3)
      for (const failure of failures) assert.include(failure, `the agent ${agent_id} still has the active session`)
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps the first reason of a freeze, cut and without what cannot be stored", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
      yield* sessions.freeze(session_id, `a\0b${"x".repeat(FROZEN_REASON_CHARS_MAX)}`)
      yield* sessions.freeze(session_id, "second")
      const { frozen_reason } = yield* rowOf(new Talk(session_id, agent_id))
      assert.strictEqual(frozen_reason, `a\uFFFDb${"x".repeat(FROZEN_REASON_CHARS_MAX - 3)}`)
    }).pipe(Effect.provide(stores))
  )

  it.effect("kills the tokens of a session that ends", () =>
    Effect.gen(function* () {
      const [sessions, tokens, sql] = [yield* SessionStore, yield* Tokens, yield* SqlClient.SqlClient]
      const { agent_id, session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000000")
      const token = yield* tokens.bootstrap(session_id, agent_id, 1)
      yield* sessions.end(session_id, "stopped")
      assert.isTrue(Option.isNone(yield* tokens.identify(Redacted.make(Redacted.value(token)))))
      const rows =
        yield* sql`SELECT bootstrap_hash, lease_hash FROM choir_control.sessions WHERE session_id = ${session_id}`
      assert.deepStrictEqual(rows, [{ bootstrap_hash: null, lease_hash: null }])
    }).pipe(Effect.provide(stores))
  )

  it.effect("hands waiting messages from session to session, each once and in order (R42)", () =>
    Effect.gen(function* () {
      const [sessions, inbox, store] = [yield* SessionStore, yield* Inbox, yield* EventStore]
      const agent_id = newAgent()
      const send = (text: string) => inbox.receive(message(agent_id, text, text))
      yield* send("one")
      const first = yield* sessions.create(agent_id, BINDINGS, "0000000")
      yield* send("two")
      assert.deepStrictEqual(yield* told(first.session_id, 2), ["one", "two"])
      yield* sessions.end(first.session_id, "crashed")
      yield* send("three")
      yield* sessions.resume(first.session_id, BINDINGS, "0000000")
      assert.deepStrictEqual(yield* told(first.session_id, 3), ["one", "two", "three"])
      yield* sessions.end(first.session_id, "closed")

      const second = yield* sessions.create(agent_id, BINDINGS, "0000000")
      assert.deepStrictEqual(yield* told(second.session_id, 3), ["one", "two", "three"])
      const one = yield* inbox.receive(message(agent_id, "one"))
      const talk = new Talk(second.session_id, agent_id).turn(one.type === "queued" ? one.inbox_id : 0)
      yield* store.append(talk.caller, talk.heartbeat(0))
      assert.deepStrictEqual(yield* told(second.session_id, 2), ["two", "three"])
      yield* sessions.end(second.session_id, "stopped")

      yield* sessions.resume(first.session_id, BINDINGS, "0000000")
      yield* send("four")
      assert.deepStrictEqual(yield* told(first.session_id, 3), ["two", "three", "four"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps the newest summary of a session, through its epochs and whatever its texts hold", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const { session_id } = yield* sessions.create(newAgent(), BINDINGS, "0000001")
      assert.isTrue(Option.isNone(yield* sessions.summary(session_id)))
      const nothing = { decisions: [], open_points: [], facts: [] }
      yield* sessions.summarize(session_id, { title: "first", summary: "", ...nothing })
      const second = { title: "a\0b\ud800", summary: 'it\'s "quoted"', ...nothing, facts: ["\u{1F600}", ""] }
      yield* sessions.summarize(session_id, second)
      yield* sessions.end(session_id, "stopped")
      yield* sessions.resume(session_id, BINDINGS, "0000001")
      assert.deepStrictEqual(Option.getOrThrow(yield* sessions.summary(session_id)), {
        ...second,
        title: "a\uFFFDb\uFFFD"
      })
    }).pipe(Effect.provide(stores))
  )

  it.effect("loses no message that races with a start (R42)", () =>
    Effect.gen(function* () {
      const [sessions, inbox] = [yield* SessionStore, yield* Inbox]
      for (let round = 0; round < 5; round++) {
        const agent_id = newAgent()
        const texts = Array.from({ length: 8 }, (_, index) => `m${index}`)
        const [{ session_id }] = yield* Effect.all(
          [
            sessions.create(agent_id, BINDINGS, "0000000"),
            Effect.forEach(texts, (text) => inbox.receive(message(agent_id, text, text)), { concurrency: 4 })
          ],
          { concurrency: "unbounded" }
        )
        const seen = yield* told(session_id, texts.length)
        assert.deepStrictEqual(new Set(seen), new Set(texts))
      }
    }).pipe(Effect.provide(stores))
  )
})
