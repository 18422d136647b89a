import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller, Heartbeat } from "#schema/AgentApi.ts"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, SessionId } from "#schema/Ids.ts"
import { isPrintedEvent, type LogLine } from "#schema/SessionsApi.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeEngines, describePostgres, postgresEngine } from "../../support/engines.ts"
import { BINDINGS, modelOutput, newTalk, notice, reply, rowOf, stores, Talk, userMsg } from "../../support/stores.ts"
import { TAIL_PAGE_BYTES_MAX } from "#src/choird/sessions/snapshots.ts"
import { EVENT_DEPTH_MAX } from "#src/shared/text/canonicalJson.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"
import { refuseEvent } from "../../support/refusedEvent.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const FLIPPED = "0".repeat(64)
const deep = (levels: number): object => (levels === 0 ? {} : { inner: deep(levels - 1) })

/** A log of six events, of which the first three are stored. */
const halfStored = Effect.gen(function* () {
  const { append } = yield* EventStore
  const talk = (yield* newTalk).turn(1)
  yield* append(talk.caller, talk.heartbeat(0))
  return talk.turn(2)
})

/** The same beginning, another continuation. */
const forked = (talk: Talk, from: number, answer: string): Talk => {
  const other = new Talk(talk.caller.session_id, talk.caller.agent_id)
  other.links.push(...talk.links.slice(0, from))
  return other.commit(
    ...talk.events.slice(from).map((event) => (event.rev === from + 1 ? { ...event, ...notice(answer) } : event))
  )
}

const proposing = (input: object) => {
  const draft = modelOutput("c-5")
  const call = { call_id: CallId.make("c-5-0"), name: "choir.exec", input: input as {} }
  return { ...draft, payload: { ...draft.payload, tool_calls: [call] } } as typeof draft
}

/** Rows of D4's table: what the agent sends after three of its events were stored, and what becomes of it while the session lives. */
const CELLS: Readonly<Record<string, { readonly live: string; readonly send: (talk: Talk) => Heartbeat }>> = {
  next: { live: "OK 6", send: (talk) => talk.heartbeat(3) },
  empty: { live: "OK 3", send: (talk) => talk.heartbeat(3, 3) },
  duplicate: { live: "OK 3", send: (talk) => talk.heartbeat(0, 3) },
  "part of a duplicate": { live: "OK 3", send: (talk) => talk.heartbeat(1, 2) },
  overlap: { live: "OK 6", send: (talk) => talk.heartbeat(1) },
  "overlap from the start": { live: "OK 6", send: (talk) => talk.heartbeat(0) },
  gap: { live: "RESEND_FROM 3 from 4", send: (talk) => talk.heartbeat(4) },
  "gap beyond any log": {
    live: "RESEND_FROM 3 from 4",
    send: (talk) => ({ ...talk.heartbeat(6), base_rev: 2 ** 52, new_rev: 2 ** 52 })
  },
  "other history in a duplicate": { live: "CONFLICT 3", send: (talk) => forked(talk, 1, "x").heartbeat(0, 3) },
  "other history in an overlap": { live: "CONFLICT 3", send: (talk) => forked(talk, 2, "x").heartbeat(1) },
  "other head before what is next": {
    live: "CONFLICT 3",
    send: (talk) => ({ ...forked(talk, 2, "x").heartbeat(3) })
  },
  "empty with another head": { live: "CONFLICT 3", send: (talk) => ({ ...talk.heartbeat(3, 3), hash_prev: FLIPPED }) },
  "hash_prev of no event": { live: "CONFLICT 3", send: (talk) => ({ ...talk.heartbeat(3), hash_prev: FLIPPED }) },
  "hash_new of no event": { live: "CONFLICT 3", send: (talk) => ({ ...talk.heartbeat(3), hash_new: FLIPPED }) },
  "patches that skip one": {
    live: "CONFLICT 3",
    send: (talk) => ({ ...talk.heartbeat(3), patches: talk.heartbeat(3).patches.toSpliced(1, 1), new_rev: 5 })
  },
  "fewer patches than said": {
    live: "CONFLICT 3",
    send: (talk) => ({ ...talk.heartbeat(3), patches: talk.heartbeat(3).patches.slice(0, 2) })
  },
  "an event that the fold refuses": {
    live: "CONFLICT 3",
    send: (talk) => forkedAt3(talk, reply(2)).heartbeat(3)
  },
  "an event with a NUL": { live: "CONFLICT 3", send: (talk) => forkedAt3(talk, notice("a\0b")).heartbeat(3) },
  "an event that is nested too deep": {
    live: "CONFLICT 3",
    send: (talk) => forkedAt3(talk, userMsg(2), proposing(deep(EVENT_DEPTH_MAX))).heartbeat(3)
  },
  "an event that is nested as deep as it may be": {
    live: "OK 6",
    // Event, payload, tool_calls and call lie above the input.
    send: (talk) => forkedAt3(talk, userMsg(2), proposing(deep(EVENT_DEPTH_MAX - 5)), notice("x")).heartbeat(3)
  },
  "an event with a lone surrogate": {
    live: "CONFLICT 3",
    send: (talk) => {
      const beat = forkedAt3(talk, notice("x")).heartbeat(3)
      return { ...beat, patches: beat.patches.map((event) => ({ ...event, ...notice("\uD800") })) }
    }
  },
  "an event that is too large": {
    live: "EventTooLarge 4",
    send: (talk) => forkedAt3(talk, notice("x".repeat(EVENT_BYTES_MAX))).heartbeat(3)
  },
  "an epoch of the future": { live: "CONFLICT 3", send: (talk) => talk.heartbeat(3, 6, 2) }
}

const forkedAt3 = (talk: Talk, ...drafts: ReadonlyArray<EventDraft>): Talk => {
  const other = new Talk(talk.caller.session_id, talk.caller.agent_id)
  other.links.push(...talk.links.slice(0, 3))
  return other.commit(...drafts)
}

/** The answer as one word with its revisions. */
const answered = (caller: Caller, heartbeat: Heartbeat) =>
  Effect.flatMap(EventStore, ({ append }) => append(caller, heartbeat)).pipe(
    Effect.match({
      onSuccess: ({ ack_rev, action, resend_from }) =>
        `${action} ${ack_rev}${resend_from === undefined ? "" : ` from ${resend_from}`}`,
      onFailure: (error) => `${error._tag} ${error.rev}`
    })
  )

describeEngines("EventStore", (it) => {
  it.effect("answers every cell of D4's table, and freezes what it cannot explain (R11)", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const table: Record<string, unknown> = {}
      const expected: Record<string, unknown> = {}
      for (const [name, { live, send }] of Object.entries(CELLS)) {
        const talk = yield* halfStored
        const first = yield* answered(talk.caller, send(talk))
        const { frozen_reason, last_rev } = yield* rowOf(talk)
        const again = yield* answered(talk.caller, send(talk))
        const frozen = frozen_reason === null ? yield* sessions.freeze(talk.caller.session_id, "test") : "at once"
        const later = yield* answered(talk.caller, send(talk))
        const next = yield* sessions.resume(talk.caller.session_id, BINDINGS, "0000000")
        const stale = yield* answered(talk.caller, send(talk))
        const superseded = yield* answered({ ...talk.caller, standing: "superseded" }, send(talk))
        const ended: Record<string, unknown> = {}
        for (const status of ["stopped", "crashed", "closed"] as const) {
          yield* sessions.end(talk.caller.session_id, status)
          ended[status] = yield* answered({ ...talk.caller, epoch: next.epoch }, { ...send(talk), epoch: next.epoch })
        }
        const kept = (yield* rowOf(talk)).last_rev
        table[name] = { first, last_rev, again, frozen, later, stale, superseded, ended, kept }

        const stored = live === "OK 6" ? 6 : 3
        const conflict = live === "CONFLICT 3"
        const fenced = `FENCED ${send(talk).base_rev}`
        expected[name] = {
          first: live,
          last_rev: stored,
          // What was stored is a duplicate the second time; an empty one stays one.
          again: live,
          frozen: conflict ? "at once" : undefined,
          later: `CONFLICT ${stored}`,
          stale: fenced,
          superseded: fenced,
          ended: { stopped: fenced, crashed: fenced, closed: fenced },
          // A session that is frozen, over or another epoch's takes nothing more.
          kept: stored
        }
      }
      assert.deepStrictEqual(table, expected)
    }).pipe(Effect.provide(stores))
  )

  it.effect("stores nothing of a request with one refused event, and keeps the first reason", () =>
    Effect.gen(function* () {
      const { append, verify } = yield* EventStore
      const talk = yield* halfStored
      yield* append(talk.caller, forkedAt3(talk, userMsg(2), reply(7)).heartbeat(3))
      yield* append(talk.caller, { ...talk.heartbeat(3), hash_new: FLIPPED })
      const row = yield* rowOf(talk)
      assert.strictEqual(
        row.frozen_reason,
        "event 5 does not fit: AgentMessage: it answers another message than the turn's"
      )
      assert.deepStrictEqual(yield* verify(talk.caller.session_id), { ok: true, events: 3, head: talk.hash(3) })
    }).pipe(Effect.provide(stores))
  )

  for (const code of ["21000", "22P05", "22001", "23514", "54000"])
    it.effect(`freezes a session whose events the database refuses for what they hold (${code}), with its words`, () =>
      Effect.gen(function* () {
        const { append, unstored, verify } = yield* EventStore
        const talk = yield* halfStored
        const { session_id } = talk.caller
        const allow = yield* refuseEvent(session_id, 5, code, "character has no equivalent")
        const reply = yield* append(talk.caller, talk.heartbeat(3))
        yield* allow
        assert.strictEqual(reply.action, "CONFLICT")
        const { frozen_reason } = yield* rowOf(talk)
        assert.match(frozen_reason ?? "", /^the database refuses the events 4 to 6: .*character has no equivalent/u)
        assert.deepStrictEqual(yield* verify(session_id), { ok: true, events: 3, head: talk.hash(3) })
        assert.deepStrictEqual(yield* unstored, [])
      }).pipe(Effect.provide(stores))
    )

  for (const code of ["42703", "42501", "25006", "XX001"])
    it.effect(
      `keeps a session whose events the database does not take for another reason (${code}), and names it`,
      () =>
        Effect.gen(function* () {
          const { append, unstored } = yield* EventStore
          const talk = yield* halfStored
          const { agent_id, session_id } = talk.caller
          const allow = yield* refuseEvent(session_id, 5, code, "something is missing")
          assert.isTrue(Exit.isFailure(yield* Effect.exit(append(talk.caller, talk.heartbeat(3)))))
          const [named, ...others] = yield* unstored
          assert.deepStrictEqual([named?.agent_id, others], [agent_id, []])
          assert.match(named?.problem ?? "", /something is missing/u)
          assert.isNull((yield* rowOf(talk)).frozen_reason)
          yield* allow
          assert.strictEqual((yield* append(talk.caller, talk.heartbeat(3))).action, "OK")
          assert.deepStrictEqual(yield* unstored, [])
        }).pipe(Effect.provide(stores))
    )

  it.effect("fences a caller whose session there is not", () =>
    Effect.gen(function* () {
      const talk = new Talk(SessionId.make("0000000000000000"), (yield* newTalk).caller.agent_id).turn(1)
      assert.strictEqual(yield* answered(talk.caller, talk.heartbeat(0)), "FENCED 0")
    }).pipe(Effect.provide(stores))
  )

  it.effect("stores racing appends once and in order", () =>
    Effect.gen(function* () {
      const { append, verify } = yield* EventStore
      const talk = (yield* newTalk).turn(1).turn(2).turn(3)
      const beats = [talk.heartbeat(0), talk.heartbeat(0, 3), talk.heartbeat(0, 6), talk.heartbeat(0)]
      const replies = yield* Effect.forEach(beats, (beat) => append(talk.caller, beat), { concurrency: "unbounded" })
      assert.deepStrictEqual(new Set(replies.map(({ action }) => action)), new Set(["OK"]))
      assert.deepStrictEqual(yield* verify(talk.caller.session_id), { ok: true, events: 9, head: talk.hash(9) })
    }).pipe(Effect.provide(stores))
  )

  it.effect("goes on after a restart from what is stored, and sees the same state", () =>
    Effect.gen(function* () {
      const [talk, before] = yield* Effect.gen(function* () {
        const talk = yield* halfStored
        return [talk, yield* (yield* EventStore).state(talk.caller.session_id)] as const
      }).pipe(Effect.provide(stores))
      yield* Effect.gen(function* () {
        const { append, head, state } = yield* EventStore
        assert.deepStrictEqual(yield* state(talk.caller.session_id), before)
        assert.strictEqual((yield* append(talk.caller, talk.heartbeat(3))).action, "OK")
        assert.deepStrictEqual(yield* head(talk.caller.session_id), { rev: 6, hash: talk.hash(6) })
        assert.strictEqual((yield* state(talk.caller.session_id)).rev, 6)
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("freezes a session whose stored log was changed, rather than go on from it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* Effect.provide(halfStored, stores)
      yield* sql`UPDATE choir_control.session_events SET body = ${Buffer.from('{"text":"gone"}')}
        WHERE session_id = ${talk.caller.session_id} AND rev = 2`
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* answered(talk.caller, talk.heartbeat(3)), "CONFLICT 3")
        assert.match((yield* rowOf(talk)).frozen_reason ?? "", /^the stored log is broken at 2: its digest/u)
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("pages the tail below its limit, and refuses an unknown session", () =>
    Effect.gen(function* () {
      const { append, tail } = yield* EventStore
      const talk = yield* newTalk
      for (let rev = 0; rev < 6; rev++) {
        talk.commit(notice(String(rev).repeat(TAIL_PAGE_BYTES_MAX / 3)))
        yield* append(talk.caller, talk.heartbeat(rev))
      }
      const { session_id } = talk.caller
      const first = yield* tail(session_id, 0)
      assert.deepStrictEqual(first, { events: talk.events.slice(0, 2), more: true })
      assert.deepStrictEqual(yield* tail(session_id, 5), { events: talk.events.slice(4), more: false })
      assert.deepStrictEqual(yield* tail(session_id, 2 ** 52), { events: [], more: false })
      const unknown = yield* Effect.flip(tail(SessionId.make("0000000000000000"), 1))
      assert.strictEqual(unknown.message, "there is no session 0000000000000000")
    }).pipe(Effect.provide(stores))
  )

  it.effect("prints from a revision, the last few, and what is appended after", () =>
    Effect.gen(function* () {
      const { append, events } = yield* EventStore
      const talk = yield* halfStored
      const { session_id } = talk.caller
      const revs = (options: { readonly from?: number; readonly last?: number }) =>
        Effect.map(Stream.runCollect(events(session_id, { ...options, follow: false })), (printed) =>
          printed.filter(isPrintedEvent).map(({ event }) => event.rev)
        )
      assert.deepStrictEqual(yield* revs({}), [1, 2, 3])
      assert.deepStrictEqual(yield* revs({ from: 2.5 }), [2, 3])
      assert.deepStrictEqual(yield* revs({ last: 1 }), [3])
      assert.deepStrictEqual(yield* revs({ from: -5, last: 1e300 }), [1, 2, 3])
      assert.deepStrictEqual(yield* revs({ from: 1e300 }), [])

      const printed = yield* Queue.bounded<LogLine>(8)
      yield* events(session_id, { last: 1, follow: true }).pipe(
        Stream.runForEach((event) => Queue.offer(printed, event)),
        Effect.forkScoped({ startImmediately: true })
      )
      const expected = (rev: number) => ({ event: talk.events[rev - 1]!, hash: talk.hash(rev) })
      assert.deepStrictEqual(yield* Queue.take(printed), expected(3))
      yield* append(talk.caller, talk.heartbeat(3, 4))
      yield* append(talk.caller, talk.heartbeat(4))
      for (const rev of [4, 5, 6]) assert.deepStrictEqual(yield* Queue.take(printed), expected(rev))
    }).pipe(Effect.provide(stores))
  )

  it.effect("tells its readers of each append, with the events and the state after it", () =>
    Effect.gen(function* () {
      const { append, appended } = yield* EventStore
      const talk = (yield* newTalk).turn(1).turn(2)
      const told = yield* Queue.bounded<{ readonly revs: ReadonlyArray<number>; readonly rev: number }>(8)
      yield* appended.pipe(
        Stream.filter(({ session_id }) => session_id === talk.caller.session_id),
        Stream.runForEach(({ events, state }) =>
          Queue.offer(told, { revs: events.map(({ rev }) => rev), rev: state.rev })
        ),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* append(talk.caller, talk.heartbeat(0, 2))
      yield* append(talk.caller, talk.heartbeat(0, 2))
      yield* append(talk.caller, talk.heartbeat(1))
      assert.deepStrictEqual(yield* Queue.take(told), { revs: [1, 2], rev: 2 })
      assert.deepStrictEqual(yield* Queue.take(told), { revs: [3, 4, 5, 6], rev: 6 })
    }).pipe(Effect.provide(stores))
  )
})

/** The answer to a second half whose connection the server drops before it is stored. */
const dropped = Effect.fnUntraced(function* (talk: Talk) {
  const sql = yield* SqlClient.SqlClient
  const [locked, done] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const holder = yield* sql
    .withTransaction(
      sql`SELECT 1 FROM choir_control.sessions WHERE session_id = ${talk.caller.session_id} FOR UPDATE`.pipe(
        Effect.andThen(Deferred.succeed(locked, undefined)),
        Effect.andThen(Deferred.await(done))
      )
    )
    .pipe(Effect.forkChild({ startImmediately: true }))
  yield* Deferred.await(locked)
  const waiting = yield* answered(talk.caller, talk.heartbeat(3)).pipe(Effect.forkChild({ startImmediately: true }))
  yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`.pipe(
    Effect.repeat({ until: (ended) => ended.length > 0 })
  )
  const answer = yield* Fiber.join(waiting)
  yield* Deferred.succeed(done, undefined)
  yield* Fiber.join(holder)
  return answer
})

describePostgres("EventStore on a server", () => {
  layer(postgresEngine.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect(
      "asks the agent to come again when the server drops its connection, and then stores the same request",
      () =>
        Effect.gen(function* () {
          const talk = yield* halfStored
          assert.strictEqual(yield* dropped(talk), "BACKOFF 3")
          assert.strictEqual(yield* answered(talk.caller, talk.heartbeat(3)), "OK 6")
        }).pipe(Effect.provide(stores))
    )

    it.effect("tells its readers of events whose commit nobody heard of, once they are sent again (R3)", () =>
      Effect.gen(function* () {
        const { appended } = yield* EventStore
        const talk = yield* halfStored
        const told = yield* Queue.bounded<ReadonlyArray<number>>(8)
        yield* appended.pipe(
          Stream.filter(({ session_id }) => session_id === talk.caller.session_id),
          Stream.runForEach(({ events }) =>
            Queue.offer(
              told,
              events.map(({ rev }) => rev)
            )
          ),
          Effect.forkScoped({ startImmediately: true })
        )
        assert.strictEqual(yield* dropped(talk), "BACKOFF 3")
        // As if the dropped connection had committed: another store over the same tables, whose announcements reach nobody here.
        yield* Effect.provide(answered(talk.caller, talk.heartbeat(3)), Layer.fresh(stores))
        assert.strictEqual(yield* answered(talk.caller, talk.heartbeat(3)), "OK 6")
        assert.deepStrictEqual(yield* Queue.take(told), [4, 5, 6])
        assert.strictEqual(yield* answered(talk.caller, talk.heartbeat(3)), "OK 6")
        assert.strictEqual(yield* Queue.size(told), 0)
      }).pipe(Effect.provide(stores))
    )
  })
})
