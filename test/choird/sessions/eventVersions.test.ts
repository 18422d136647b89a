import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Result, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, Rev, type SessionId, Sha256 } from "#schema/Ids.ts"
import { decide, NEWER_EVENTS_MAX } from "#src/choird/sessions/decideAppend.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { replay, replayStart } from "#src/choird/sessions/storedEvents.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { ForgottenPayloads, rowOf as eventRowOf } from "#src/shared/events/eventRow.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { FORGOTTEN, reducedPayload } from "#src/choird/sessions/reducedPayload.ts"
import { packPayload } from "#src/shared/events/storedPayload.ts"
import { describeStores } from "../../support/engines.ts"
import { makeHistory } from "../../support/history.ts"
import { RECORDED_SESSION } from "../../support/mixedHistory.ts"
import { BINDINGS, newTalk, reply, rowOf, SALT, stores, type Talk } from "../../support/stores.ts"
import { addNewer, forgets, GROWN, LATER, PLAN, reduce, storeVersion1, WIDENED } from "../../support/storedVersions.ts"
import { historyProblems } from "../../support/verifyHistory.ts"

describe("a reduced payload", () => {
  it("folds like the whole one, apart from the digests that find loops and what compactions kept", () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const { events } = makeHistory(seed, 250)
      const reduced = events.map((event) => ({ ...event, payload: reducedPayload(event) }) as ChoirEvent)
      const digests = new Set(["digest", "repetitions", "summary", "mixed"])
      const shape = (history: ReadonlyArray<ChoirEvent>) =>
        JSON.stringify(Result.getOrThrow(foldAll(initialState, history)), (key, value: unknown) =>
          digests.has(key)
            ? undefined
            : typeof value === "bigint"
              ? String(value)
              : value instanceof Map
                ? [...value]
                : value
        )
      assert.strictEqual(shape(reduced), shape(events))
      // Once is enough.
      for (const event of reduced) assert.deepStrictEqual(reducedPayload(event), event.payload)
    }
  })

  it("keeps of an output's notes that one asked for a correction, which the fold reads, and no more", () => {
    const output = makeHistory(1, 250).events.find((event) => event.event_type === "ModelOutput")
    const reduced = (...about: ReadonlyArray<string>) => {
      const prompt = { rev: Rev.make(1), notes: about.map((each) => ({ about: each, text: "what was said" })) }
      return reducedPayload({ ...output!, payload: { ...output!.payload, prompt } })
    }
    const notes = [{ about: "correction", text: FORGOTTEN }]
    assert.deepInclude(reduced("turn 7", "correction"), { prompt: { rev: Rev.make(1), notes } })
    assert.deepInclude(reduced("turn 7"), { prompt: { rev: Rev.make(1) } })
  })

  it("is known in a recorded history that begins with version 1 (D52)", () => {
    const lines = readFileSync(join(import.meta.dirname, "../../shared/session/recorded/mixed.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
    const printed = lines.map((line) => {
      const { hash, ...event } = JSON.parse(line) as ChoirEvent & { readonly hash: string }
      return { event, hash }
    })
    assert.deepStrictEqual([...new Set(printed.map(({ event }) => event.v))], [1, 2])
    assert.deepStrictEqual(historyProblems(RECORDED_SESSION, printed), [])
    const payloads = new ForgottenPayloads()
    let at = replayStart(RECORDED_SESSION)
    for (const { event, hash } of printed) {
      const link = { event, hash: Buffer.from(hash, "hex"), payload: canonicalJson(event.payload), bytes: 0 }
      at = Result.getOrThrow(replay(at, eventRowOf(link), payloads))
    }
    assert.deepStrictEqual([payloads.count, payloads.unlisted], [1, undefined])
    assert.strictEqual(hex(at.hash), "f8f679ac3512cc4ee040c8967a0f2b55c9069b6bf2d02ab94c2bf2e108542bb7")
  })
})

describe("events of a later Choir", () => {
  it("are taken up to a limit, and nothing is frozen beyond it (D53)", () => {
    const hash = genesis(RECORDED_SESSION)
    const newer = { rev: 5, v: 2, event_type: "PlanCommitted" }
    const taken = (rev: number) => {
      const event = { ...newer, rev, lane: EDGE, payload: {}, created_at: "2026-01-01T00:00:00.000Z", salt: SALT }
      const link = chainEvent(hash, event)
      const ends = { base_rev: Rev.make(rev - 1), new_rev: Rev.make(rev) }
      const hashes = { hash_prev: Sha256.make(hex(hash)), hash_new: Sha256.make(hex(link.hash)) }
      const heartbeat = { epoch: 1 as never, ...ends, ...hashes, patches: [event], config_version: 1, timestamp: "" }
      const problem = { rev: 5, reason: "a later Choir wrote it", newer }
      const at = replayStart(RECORDED_SESSION)
      return decide(heartbeat, [link], { at, head: { rev: rev - 1, hash }, problem }, () => undefined).type
    }
    assert.strictEqual(taken(6), "store")
    assert.strictEqual(taken(4 + NEWER_EVENTS_MAX), "store")
    assert.strictEqual(taken(5 + NEWER_EVENTS_MAX), "frozen")
  })
})

describeStores("versions of events", (it) => {
  const append = Effect.fnUntraced(function* (talk: Talk, from: number) {
    const store = yield* EventStore
    assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(from))).action, "OK")
    return talk
  })
  const stored = Effect.flatMap(newTalk, (talk) => append(talk.turn(1, "My pin is 4711.").turn(2), 0))

  it.effect("stores a payload once, and gives back what was committed (P4)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* stored
      const rows = yield* sql<Record<string, unknown>>`SELECT payload, canonical, octet_length(body) AS size, bytes
        FROM choir_control.session_events WHERE session_id = ${talk.caller.session_id} ORDER BY rev`
      for (const [index, { bytes, canonical, payload, size }] of rows.entries()) {
        const link = talk.links[index]!
        assert.deepStrictEqual([payload, canonical, bytes], [null, null, link.bytes])
        assert.isAtMost(size as number, Buffer.byteLength(link.payload))
      }
      const { tail } = yield* EventStore
      assert.deepStrictEqual((yield* tail(talk.caller.session_id, 1)).events, talk.events)
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "continues with version 2 where a session began with version 1, in rows of before migration 0009 (D52)",
    () =>
      Effect.gen(function* () {
        const talk = (yield* newTalk).turn(1)
        yield* storeVersion1(talk)
        yield* append(talk.turn(2), 3)
        const { events, tail, verify } = yield* EventStore
        const { session_id } = talk.caller
        assert.deepStrictEqual(yield* verify(session_id), { ok: true, events: 6, head: talk.hash(6) })
        assert.deepStrictEqual((yield* tail(session_id, 1)).events, talk.events)
        const printed = yield* Stream.runCollect(events(session_id, { follow: false }))
        assert.deepStrictEqual(historyProblems(session_id, printed as never), [])
        assert.deepStrictEqual(
          talk.events.map(({ v }) => v),
          [1, 1, 1, 2, 2, 2]
        )
      }).pipe(Effect.provide(stores))
  )

  it.effect("reduces what a chained event lists, and nothing else (D52)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* EventStore
      const talk = yield* stored
      const { session_id } = talk.caller
      const refusal = (...revs: ReadonlyArray<number>) =>
        Effect.map(Effect.flip(reduce(session_id, ...revs)), ({ message }) => message)
      assert.strictEqual(yield* refusal(2), "event 2 is not reduced: no later event lists what would be left of it")
      yield* append(talk.commit(forgets(talk, 2, 3)), 6)
      assert.strictEqual(yield* refusal(2, 1), "event 1 is not reduced: no later event lists what would be left of it")
      assert.strictEqual(yield* refusal(9), "event 9 is not reduced: there is no such event")
      assert.strictEqual(yield* reduce(session_id, 2, 3), 2)
      assert.strictEqual(yield* reduce(session_id, 2, 3), 0)
      assert.deepStrictEqual(yield* store.verify(session_id), { ok: true, events: 7, head: talk.hash(7), forgotten: 2 })

      const { events } = yield* store.tail(session_id, 1)
      assert.notInclude(JSON.stringify(events), "4711")
      let hash = genesis(session_id)
      for (const event of events) hash = chainEvent(hash, event).hash
      assert.strictEqual(hex(hash), talk.hash(7), "an agent that takes it over comes to another digest")
      const printed = yield* Stream.runCollect(store.events(session_id, { follow: false }))
      assert.deepStrictEqual(historyProblems(session_id, printed as never), [])

      // The agent continues, also with a choird that folds the log from its beginning.
      yield* append(talk.turn(3), 7).pipe(Effect.provide(stores))
      yield* sql`UPDATE choir_control.session_events SET body = ${packPayload('{"in_reply_to":"1","kind":"reply","text":"forged"}')}
        WHERE session_id = ${session_id} AND rev = 3`
      const { ok, problem } = yield* store.verify(session_id)
      assert.isFalse(ok)
      assert.deepStrictEqual(problem, {
        rev: 3,
        reason: "its payload was changed, and no later event lists the change"
      })
    }).pipe(Effect.provide(stores))
  )

  it.effect("refuses an agent's event that brings the digest of another payload", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = (yield* newTalk).turn(1)
      const [first] = talk.events
      talk.links.length = 0
      talk.links.push(chainEvent(genesis(talk.caller.session_id), { ...first!, payload_digest: "ab".repeat(32) }))
      assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(0))).action, "CONFLICT")
      assert.strictEqual((yield* rowOf(talk)).frozen_reason, "event 1 brings the digest of another payload")
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps and proves what a later Choir wrote, and says who did, but does not run it (D53)", () =>
    Effect.gen(function* () {
      const talk = yield* stored
      const { session_id } = talk.caller
      yield* addNewer(talk, PLAN, LATER)
      yield* Effect.gen(function* () {
        const store = yield* EventStore
        const newer = { rev: 7, v: 2, event_type: "PlanCommitted" }
        assert.deepStrictEqual(yield* store.verify(session_id), { ok: true, events: 8, head: talk.hash(8), newer })
        const asked = [store.state(session_id), store.tail(session_id, 1), store.recovery(session_id)]
        for (const ask of asked) {
          const error = yield* Effect.flip<unknown, { readonly _tag: string; readonly message: string }, never>(ask)
          assert.strictEqual(error._tag, "NewerEvents")
          assert.include(error.message, "from revision 7 on (PlanCommitted, version 2); choird 9.1.0 ran it last")
        }
        const printed = yield* Stream.runCollect(store.events(session_id, { from: 6, follow: false }))
        assert.deepStrictEqual(printed[0], { event: talk.events[5]!, hash: talk.hash(6) })
        assert.deepStrictEqual(printed[1], { opaque: talk.events[6] as never, hash: talk.hash(7) })
        assert.deepStrictEqual(printed[2], { opaque: talk.events[7] as never, hash: talk.hash(8) })

        // What an agent still sends is kept, and the session is not marked: the later choird continues it.
        talk.turn(9)
        assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(8))).action, "OK")
        assert.deepInclude(yield* store.verify(session_id), { ok: true, events: 11, newer })
        assert.isNull((yield* rowOf(talk)).frozen_reason)

        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE choir_control.session_events SET body = ${Buffer.from('{"plan":[]}')}
          WHERE session_id = ${session_id} AND rev = 8`
        assert.deepInclude(yield* store.verify(session_id), { ok: false, events: 7 })
      }).pipe(Effect.provide(stores))
    }).pipe(Effect.provide(stores))
  )

  it.effect("stores what an agent of a later Choir sends by its chain alone (D53)", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = yield* stored
      const { session_id } = talk.caller
      const later = { ...PLAN, lane: "edge", payload: { plan: [1] } } as never
      // The known event after it does not fit this fold, and may fit that of the later choird.
      talk.turn(3).commit(later, reply(3, "again"))
      const forged = { ...talk.heartbeat(6), hash_prev: talk.hash(1) } as never
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(6)), { action: "OK", ack_rev: 11 })
      assert.deepInclude(yield* store.append(talk.caller, talk.heartbeat(6)), { action: "OK", ack_rev: 11 })
      const newer = { rev: 10, v: 2, event_type: "PlanCommitted" }
      assert.deepStrictEqual(yield* store.verify(session_id), { ok: true, events: 11, head: talk.hash(11), newer })
      assert.strictEqual((yield* Effect.flip(store.state(session_id)))._tag, "NewerEvents")

      const afresh = Effect.gen(function* () {
        const again = yield* EventStore
        talk.commit(later)
        assert.deepInclude(yield* again.append(talk.caller, talk.heartbeat(11)), { action: "OK", ack_rev: 12 })
      })
      yield* afresh.pipe(Effect.provide(stores))
      assert.strictEqual((yield* store.append(talk.caller, forged)).action, "CONFLICT")
      assert.match((yield* rowOf(talk)).frozen_reason ?? "", /the digest at 6 differs/u)
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps and does not run events of known types whose payloads a later Choir let grow (D53)", () =>
    Effect.gen(function* () {
      for (const grown of [GROWN, WIDENED]) {
        const talk = yield* stored
        const { session_id } = talk.caller
        yield* addNewer(talk, grown, PLAN)
        yield* Effect.gen(function* () {
          const store = yield* EventStore
          const newer = { rev: 7, v: 2, event_type: grown.event_type }
          assert.deepStrictEqual(yield* store.verify(session_id), { ok: true, events: 8, head: talk.hash(8), newer })
          for (const ask of [store.state(session_id), store.tail(session_id, 1), store.recovery(session_id)]) {
            const error = yield* Effect.flip<unknown, { readonly _tag: string; readonly message: string }, never>(ask)
            assert.strictEqual(error._tag, "NewerEvents")
            assert.include(
              error.message,
              `from revision 7 on (${grown.event_type}, version 2); choird 9.1.0 ran it last`
            )
          }
          const printed = yield* Stream.runCollect(store.events(session_id, { from: 6, follow: false }))
          assert.deepStrictEqual(printed[1], { opaque: talk.events[6] as never, hash: talk.hash(7) })
          const sessions = yield* SessionStore
          assert.deepInclude(Option.getOrUndefined(yield* sessions.newer(session_id)), newer)

          talk.turn(9)
          assert.strictEqual((yield* store.append(talk.caller, talk.heartbeat(8))).action, "OK")
          assert.isNull((yield* rowOf(talk)).frozen_reason)

          const sql = yield* SqlClient.SqlClient
          yield* sql`UPDATE choir_control.session_events SET body = ${Buffer.from('{"plan":[]}')}
            WHERE session_id = ${session_id} AND rev = 7`
          assert.deepInclude(yield* store.verify(session_id), { ok: false, events: 6 })
        }).pipe(Effect.provide(stores))
      }
    }).pipe(Effect.provide(stores))
  )

  it.effect("counts what a later Choir's event lists as reduced, though its payload has grown", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const talk = yield* stored
      const { session_id } = talk.caller
      const { event_type, payload } = forgets(talk, 2, 3)
      yield* append(talk.commit(forgets(talk, 2, 3)), 6)
      yield* reduce(session_id, 2, 3)
      assert.deepInclude(yield* store.verify(session_id), { ok: true, forgotten: 2 })
      const sql = yield* SqlClient.SqlClient
      yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev = 7`
      talk.links.pop()
      yield* addNewer(talk, { v: 2, event_type, payload: { ...payload, why: "asked" } })
      const proved = yield* store.verify(session_id).pipe(Effect.provide(stores))
      assert.deepInclude(proved, { ok: true, forgotten: 2, newer: { rev: 7, v: 2, event_type } })
    }).pipe(Effect.provide(stores))
  )

  it.effect("finds the first event of a later Choir, and the choird that wrote it", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const newerOf = (session_id: SessionId) => Effect.map(sessions.newer(session_id), Option.getOrUndefined)
      const talk = yield* stored
      const { agent_id, session_id } = talk.caller
      assert.isUndefined(yield* newerOf(session_id))
      yield* addNewer(talk, LATER)
      const found = yield* newerOf(session_id)
      assert.deepInclude(found, { rev: 7, v: 3, event_type: "UserMsg", choird_version: "9.1.0" })
      assert.match(found?.hint ?? "", /^run choird 9\.1\.0 or later; /u)
      // The next choird that begins it is noted.
      yield* sessions.end(session_id, "stopped")
      yield* sessions.resume(session_id, BINDINGS, "0000000")
      assert.deepInclude(yield* newerOf(session_id), { choird_version: null }, "this choird wrote none of them")
      assert.isString(agent_id)
      // One of a known type may be before it, whichever version the choird that wrote it had.
      const other = yield* stored
      yield* addNewer(other, GROWN, LATER)
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE choir_control.sessions SET choird_version = ${VERSION} WHERE session_id = ${other.caller.session_id}`
      assert.deepInclude(yield* newerOf(other.caller.session_id), { rev: 7, v: 2, event_type: "UserMsg" })
    }).pipe(Effect.provide(stores))
  )
})
