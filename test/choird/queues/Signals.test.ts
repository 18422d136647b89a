import { assert } from "@effect/vitest"
import { Clock, Effect, Fiber, Queue, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { EDGE, InboxId, JobName, LaneId, type SessionId, SignalId } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { type Pushed, Signals, SIGNALS_PAGE_MAX } from "#src/choird/queues/Signals.ts"
import { describeStores } from "../../support/engines.ts"
import { settableClock } from "../../support/settableClock.ts"
import { BINDINGS, DESK, message, newTalk, stores, type Talk } from "../../support/stores.ts"

const JOB = JobName.make("job")

const take = (session_id: SessionId, after: string | undefined, count: number) =>
  Effect.flatMap(Signals, ({ stream }) => stream(session_id, after).pipe(Stream.take(count), Stream.runCollect))

let requests = 0
/** Asks for the end of the job, as one more request; answers the signal's id. */
const cancelCore = Effect.fnUntraced(function* (session_id: SessionId) {
  requests += 1
  const sent = yield* (yield* Signals).send(session_id, `r-${requests}`, { type: "CancelCore", job_name: JOB })
  return sent.type === "queued" ? sent.signal_id : yield* Effect.die(sent)
})

const send = (talk: Talk, text: string) =>
  Effect.flatMap(Inbox, ({ receive }) => receive(message(talk.caller.agent_id, text, text)))

const types = (pushed: ReadonlyArray<Pushed>) => pushed.map(({ signal }) => signal.type)

describeStores("Signals", (it) => {
  it.effect("ask for an answer that is heard, where the chat wants every one, or speaks itself", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { receive } = yield* Inbox
      const recorded = (kind: string) => [
        { path: `.choirtmp/recv/${kind}-1.ogg`, name: "v", mime: "audio/ogg", bytes: 1 }
      ]
      for (const [mode, expected] of [
        ["off", [undefined, undefined, undefined]],
        ["mirror", [undefined, true, undefined]],
        ["on", [true, true, true]],
        ["anything", [undefined, undefined, undefined]]
      ] as const) {
        yield* sql`INSERT INTO choir_control.chat_settings (dm, rich, voice) VALUES (${DESK}, false, ${mode})
          ON CONFLICT (dm) DO UPDATE SET voice = excluded.voice`
        const talk = yield* newTalk
        const { agent_id, session_id } = talk.caller
        for (const [index, attachments] of [[], recorded("voice"), recorded("audio")].entries())
          yield* receive({ ...message(agent_id, `${session_id}-${index}`), attachments })
        const pushed = yield* take(session_id, undefined, 3)
        const spoken = pushed.map(({ signal }) => (signal.type === "UserMessage" ? signal.speak : "no message"))
        assert.deepStrictEqual(spoken, [...expected], mode)
      }
      yield* sql`DELETE FROM choir_control.chat_settings WHERE dm = ${DESK}`
    }).pipe(Effect.provide(stores))
  )

  it.effect("tell what waits, then what comes, and after a reconnect only what follows", () =>
    Effect.gen(function* () {
      const signals = yield* Signals
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const received = yield* send(talk, "hello")
      const seen = yield* Queue.bounded<Pushed>(8)
      yield* signals.stream(session_id, undefined).pipe(
        Stream.runForEach((pushed) => Queue.offer(seen, pushed)),
        Effect.forkScoped({ startImmediately: true })
      )
      const first = yield* Queue.take(seen)
      assert.deepStrictEqual(
        { ...first.signal, created_at: "" },
        {
          type: "UserMessage",
          inbox_id: received.type === "queued" ? received.inbox_id : InboxId.make("1"),
          dm: DESK,
          text: "hello",
          attachments: [],
          created_at: ""
        }
      )
      const signal_id = yield* cancelCore(session_id)
      const second: Pushed = {
        id: signal_id,
        signal: { type: "CancelCore", signal_id: SignalId.make(signal_id), job_name: JOB }
      }
      assert.deepStrictEqual(yield* Queue.take(seen), second)
      assert.deepStrictEqual(yield* take(session_id, first.id, 1), [second])
      for (const after of ["nonsense", "-1", "99999999999999999999", ""])
        assert.deepStrictEqual(yield* take(session_id, after, 2), [first, second])
    }).pipe(Effect.provide(stores))
  )

  it.effect("forget what an acknowledged event ended, of this session alone", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const [talk, other] = [yield* newTalk, yield* newTalk]
      const received = yield* send(talk, "hello")
      const ids = [
        yield* cancelCore(talk.caller.session_id),
        yield* cancelCore(other.caller.session_id),
        yield* cancelCore(talk.caller.session_id)
      ]
      talk.turn(received.type === "queued" ? received.inbox_id : 0)
      for (const id of ids.slice(0, 2)) {
        const payload = {
          signal_id: SignalId.make(id),
          target: LaneId.make("core:job"),
          by: "user",
          reason: "no_such_job"
        } as const
        talk.commit({ event_type: "Cancelled", lane: LaneId.make("core:job"), payload })
      }
      // An id that no row has is an event all the same.
      const target = {
        signal_id: SignalId.make("9".repeat(18)),
        target: EDGE,
        source: "user",
        content: "x",
        refused: "x"
      } as const
      talk.commit({ event_type: "InjectedInstruction", lane: EDGE, payload: target })
      assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(0))).action, "OK")
      assert.deepStrictEqual(
        (yield* take(talk.caller.session_id, undefined, 1)).map(({ id }) => id),
        [ids[2]]
      )
      assert.deepStrictEqual(
        (yield* take(other.caller.session_id, undefined, 1)).map(({ id }) => id),
        [ids[1]]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("read more than a page in order", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const sql = yield* SqlClient.SqlClient
      const count = 2 * SIGNALS_PAGE_MAX + 1
      yield* sql`INSERT INTO choir_control.signals (session_id, kind, payload)
        SELECT ${talk.caller.session_id}, 'CancelCore', jsonb_build_object('job_name', 'j' || n)
        FROM generate_series(1, ${count}::int) AS n`
      const pushed = yield* take(talk.caller.session_id, undefined, count)
      assert.deepStrictEqual(
        pushed.map(({ signal }) => (signal.type === "CancelCore" ? signal.job_name : "")),
        Array.from({ length: count }, (_, index) => `j${index + 1}`)
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("ask for a stop with the time that is left, however the host's clock is set meanwhile", () =>
    Effect.gen(function* () {
      const { clock, set } = yield* settableClock
      yield* Effect.gen(function* () {
        const signals = yield* Signals
        const talk = yield* newTalk
        const { session_id } = talk.caller
        yield* signals.stop(session_id, 60_000)
        for (const by_ms of [-3_600_000, 7_200_000]) {
          set(by_ms)
          const [told] = yield* take(session_id, undefined, 1)
          const left = told?.signal.type === "Stop" ? told.signal.deadline_ms : 0
          assert.isTrue(left > 50_000 && left <= 60_000, String(left))
        }
      }).pipe(Effect.provideService(Clock.Clock, clock))
    }).pipe(Effect.provide(stores))
  )

  it.effect("ask for a stop at each connect, with the time that is left, until the session ends", () =>
    Effect.gen(function* () {
      const [signals, sessions] = [yield* Signals, yield* SessionStore]
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const running = yield* take(session_id, undefined, 1).pipe(Effect.forkChild({ startImmediately: true }))
      yield* signals.stop(session_id, 60_000)
      const [told] = yield* Fiber.join(running)
      const [again] = yield* take(session_id, undefined, 1)
      for (const pushed of [told, again]) {
        assert.isUndefined(pushed?.id)
        const left = pushed?.signal.type === "Stop" ? pushed.signal.deadline_ms : 0
        assert.isTrue(left > 50_000 && left <= 60_000)
      }
      yield* sessions.end(session_id, "stopped")
      yield* sessions.resume(session_id, BINDINGS, "0000000")
      yield* cancelCore(session_id)
      assert.deepStrictEqual(types(yield* take(session_id, undefined, 1)), ["CancelCore"])
    }).pipe(Effect.provide(stores))
  )
})
