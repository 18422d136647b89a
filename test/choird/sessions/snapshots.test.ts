import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { isDue, SNAPSHOT_EVENTS, SNAPSHOT_MS, usable } from "#src/choird/sessions/snapshots.ts"
import { encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { fingerprint } from "../../simulation/fingerprint.ts"
import { describeStores } from "../../support/engines.ts"
import { newTalk, notice, stores, type Talk } from "../../support/stores.ts"
import { WINDOW_REVS_MAX } from "#src/shared/session/lanes.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** Events of one heartbeat here. */
const BEAT = SNAPSHOT_EVENTS / 2

const snapshotRevs = (session_id: SessionId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly rev: number }>`SELECT rev FROM choir_control.session_snapshots
        WHERE session_id = ${session_id} ORDER BY rev`,
      (rows) => rows.map(({ rev }) => rev)
    )
  )

/** Waits until the state at a revision is written. */
const written = ({ caller }: Talk, rev: number) =>
  Effect.repeat(snapshotRevs(caller.session_id), { until: (revs) => revs.includes(rev) })

/** How many the metric has as stored. */
const counted = Effect.map(Metric.snapshot, (all) => {
  const series = all.find(
    ({ attributes, id }) => id === "choir_snapshots_total" && attributes?.["outcome"] === "stored"
  )
  return series?.type === "Counter" ? Number(series.state.count) : 0
})

/** Sends everything in heartbeats of BEAT events. */
const sendAll = Effect.fnUntraced(function* (talk: Talk, from = 0) {
  const { append } = yield* EventStore
  for (let base = from; base < talk.rev; base += BEAT)
    yield* append(talk.caller, talk.heartbeat(base, Math.min(talk.rev, base + BEAT)))
})

const longTalk = Effect.fnUntraced(function* (turns: number) {
  const talk = yield* newTalk
  for (let turn = 1; turn <= turns; turn++) talk.turn(turn)
  return talk
})

const stateOf = ({ caller }: Talk) =>
  Effect.flatMap(EventStore, ({ state }) => Effect.map(state(caller.session_id), fingerprint))

describe("a snapshot", () => {
  it("is used only where the log has the same event", () => {
    const hash = Buffer.alloc(32, 1)
    const snapshot = JSON.parse(Result.getOrThrow(encodeState(initialState)))
    const row = { rev: initialState.rev, hash, fold_version: FOLD_VERSION, snapshot, chained: hash }
    assert.isTrue(Result.isSuccess(usable(row)))
    for (const chained of [Buffer.alloc(32, 2), null]) assert.isTrue(Result.isFailure(usable({ ...row, chained })))
  })

  it("is due after 500 events, or a minute with any (R5)", () => {
    const mark = { rev: 100, at_ms: 5000 }
    assert.deepStrictEqual([SNAPSHOT_EVENTS, SNAPSHOT_MS], [500, 60_000])
    assert.isFalse(isDue(mark, 599, 64_999))
    assert.isTrue(isDue(mark, 600, 5000))
    assert.isTrue(isDue(mark, 101, 65_000))
    assert.isFalse(isDue(mark, 100, 1_000_000))
  })
})

/** What a life of choird left: a snapshot and a heartbeat more, so that a tail is there, and the state at its end. */
const endedLife = Effect.gen(function* () {
  const talk = yield* longTalk((SNAPSHOT_EVENTS + BEAT) / 3)
  yield* sendAll(talk)
  yield* written(talk, SNAPSHOT_EVENTS)
  return { talk, session_id: talk.caller.session_id, before: yield* stateOf(talk) }
}).pipe(Effect.provide(stores))

describeStores("snapshots", (it) => {
  it.effect("are written every 500 events, and the newest two of a session are kept (R5)", () =>
    Effect.gen(function* () {
      const talk = yield* longTalk((4 * SNAPSHOT_EVENTS) / 3 + 1)
      yield* sendAll(talk)
      yield* written(talk, 4 * SNAPSHOT_EVENTS)
      assert.deepStrictEqual(yield* snapshotRevs(talk.caller.session_id), [3 * SNAPSHOT_EVENTS, 4 * SNAPSHOT_EVENTS])
      // The row is seen before it is counted.
      yield* Effect.repeat(counted, { until: (count) => count >= 4 })
    }).pipe(Effect.provide(stores))
  )

  it.effect("let a restarted choird go on without the events before, which verify still asks for (R5, R12)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { before, session_id, talk } = yield* endedLife
      yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev < ${SNAPSHOT_EVENTS}`
      yield* Effect.gen(function* () {
        const { append, verify } = yield* EventStore
        assert.strictEqual(yield* stateOf(talk), before)
        const more = talk.rev
        talk.commit(notice("more"))
        assert.strictEqual((yield* append(talk.caller, talk.heartbeat(more))).action, "OK")
        const { ok, problem } = yield* verify(session_id)
        assert.deepStrictEqual([ok, problem], [false, { rev: 1, reason: "the event is missing" }])
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("make a recovery of 10,000 events read at most 1,750 of them, on both sides (R5)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* Effect.provide(longTalk(3333), stores)
      const { session_id } = talk.caller
      talk.commit(notice("the last"))
      const before = yield* Effect.gen(function* () {
        yield* sendAll(talk)
        yield* written(talk, 9500)
        return yield* stateOf(talk)
      }).pipe(Effect.provide(stores))
      yield* Effect.gen(function* () {
        const { recovery, tail } = yield* EventStore
        const first = yield* recovery(session_id)
        const after = first.snapshot?.tail_after
        assert.strictEqual(after?.hash, talk.hash(after?.rev ?? 0))
        assert.strictEqual(first.snapshot?.hash, talk.hash(first.snapshot?.rev ?? 0))
        // What is not read may be gone.
        yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev < ${after?.rev ?? 0}`
        assert.deepStrictEqual(yield* recovery(session_id), first)
        assert.strictEqual(yield* stateOf(talk), before)
        const events = [...first.events]
        const from = (after?.rev ?? 0) + 1
        for (let page = first; page.more; events.push(...page.events))
          page = yield* tail(session_id, from + events.length)
        assert.deepStrictEqual(events, talk.events.slice(after?.rev))
        assert.isAtMost(events.length, WINDOW_REVS_MAX + SNAPSHOT_EVENTS + BEAT)
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("leave room for the tail in a reply of INIT_HELLO, or are left out of it (R47)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const files = (count: number) =>
        JSON.stringify(Array.from({ length: count }, (_, index) => [`file-${index}`, "0".repeat(64)]))
      const talk = yield* Effect.provide(longTalk(SNAPSHOT_EVENTS / 2), stores)
      const { session_id } = talk.caller
      yield* Effect.gen(function* () {
        const { recovery } = yield* EventStore
        const plain = yield* recovery(session_id)
        assert.deepStrictEqual([plain.snapshot, plain.events.length], [undefined, 0])
        yield* sendAll(talk)
        yield* written(talk, SNAPSHOT_EVENTS)
        const grown = (count: number) =>
          Effect.andThen(
            sql`UPDATE choir_control.session_snapshots SET snapshot = jsonb_set(snapshot, '{edge,seen}', ${files(count)}::jsonb)
              WHERE session_id = ${session_id}`,
            recovery(session_id)
          )
        const large = yield* grown(4000)
        assert.isDefined(large.snapshot)
        assert.isAbove(large.events.length, 0)
        assert.isAtMost(Buffer.byteLength(JSON.stringify(large)), BODY_BYTES_MAX)
        const larger = yield* grown(6000)
        assert.isDefined(larger.snapshot)
        assert.deepStrictEqual([larger.events.length, larger.more], [0, true])
        const tooLarge = yield* grown(13_000)
        assert.deepStrictEqual([tooLarge.snapshot, tooLarge.events[0]?.rev], [undefined, 1])
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("are passed over when they do not fit, and the log is folded as a whole", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { before, session_id, talk } = yield* endedLife
      const table = sql("choir_control.session_snapshots")
      const kept = yield* sql<{ rev: number; hash: Uint8Array; fold_version: number; snapshot: object }>`
        SELECT rev, hash, fold_version, snapshot FROM ${table} WHERE session_id = ${session_id}`
      const whole = Effect.gen(function* () {
        yield* sql`DELETE FROM ${table} WHERE session_id = ${session_id}`
        for (const { fold_version, hash, rev, snapshot } of kept)
          yield* sql`INSERT INTO ${table} (session_id, rev, hash, fold_version, snapshot)
            VALUES (${session_id}, ${rev}, ${hash}, ${fold_version}, ${JSON.stringify(snapshot)}::jsonb)`
      })
      /** A wrong state after an event behind which nothing follows that would not fit to it, so that its use shows. */
      const wrong = (rev: number, hash: Uint8Array, fold_version = FOLD_VERSION) => {
        const state = { rev, last_inbox_id: "99999" }
        return sql`UPDATE ${table} SET rev = ${rev}, hash = ${hash}, fold_version = ${fold_version},
          snapshot = snapshot || ${JSON.stringify(state)}::jsonb WHERE session_id = ${session_id}`
      }
      const head = Buffer.from(talk.hash(talk.rev), "hex")
      const damages = {
        "of a newer fold": wrong(talk.rev, head, FOLD_VERSION + 1),
        "no state": sql`UPDATE ${table} SET snapshot = '{"rev":500}' WHERE session_id = ${session_id}`,
        "another event": wrong(talk.rev, Buffer.alloc(32)),
        "beyond the end": wrong(100_000, head)
      }
      /** What choird and the next agent begin with. */
      const begun = Effect.gen(function* () {
        const { recovery } = yield* EventStore
        return { offered: (yield* recovery(session_id)).snapshot, state: yield* stateOf(talk) }
      }).pipe(Effect.provide(stores))
      for (const [what, damage] of Object.entries(damages)) {
        yield* whole
        yield* damage
        assert.deepStrictEqual(yield* begun, { offered: undefined, state: before }, what)
      }
      yield* wrong(talk.rev, head)
      const { offered, state } = yield* begun
      assert.deepStrictEqual([offered?.rev, state === before], [talk.rev, false])
      assert.isTrue(
        (yield* Effect.provide(
          Effect.flatMap(EventStore, ({ verify }) => verify(session_id)),
          stores
        )).ok
      )
    })
  )

  it.effect("freeze no session by being wrong: only the whole log says that it is broken", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* Effect.provide(longTalk((SNAPSHOT_EVENTS + BEAT) / 3), stores)
      const { session_id } = talk.caller
      yield* Effect.provide(Effect.andThen(sendAll(talk), written(talk, SNAPSHOT_EVENTS)), stores)
      // The next message would count as an old one.
      yield* sql`UPDATE choir_control.session_snapshots SET snapshot = jsonb_set(snapshot, '{last_inbox_id}', '"99999"')
        WHERE session_id = ${session_id}`
      yield* Effect.gen(function* () {
        const { append, state } = yield* EventStore
        assert.strictEqual((yield* state(session_id)).last_inbox_id, BigInt(talk.rev / 3))
        const more = talk.rev
        talk.turn(more)
        assert.strictEqual((yield* append(talk.caller, talk.heartbeat(more))).action, "OK")
      }).pipe(Effect.provide(stores))
    })
  )
})
