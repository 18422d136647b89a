import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { replay, replayStart } from "#src/choird/sessions/storedEvents.ts"
import { type EventRow, readRow, rowOf } from "#src/shared/events/eventRow.ts"
import { chainEvent, genesis } from "#src/shared/events/hashChain.ts"
import { packPayload } from "#src/shared/events/storedPayload.ts"
import { describeStores } from "../../support/engines.ts"
import { oldRow } from "../../support/golden.ts"
import { newTalk, stores, Talk } from "../../support/stores.ts"
import { SIZE } from "../../support/size.ts"

const MUTATIONS = SIZE.rowChanges
const MUTATIONS_PER_SESSION = 50

/** Numbers that are the same in each run. */
const seeded = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Another character, of those that a text column can hold. */
const otherCharacter = (random: (below: number) => number, character: string): string => {
  const other = String.fromCodePoint(1 + random(0xd7ff))
  return other === character ? `${other}${other}` : other
}

const mutated = (random: (below: number) => number, text: string): string => {
  const at = random(text.length)
  const changes = [
    text.slice(0, at) + otherCharacter(random, text.charAt(at)) + text.slice(at + 1),
    text.slice(0, at) + text.slice(at + 1),
    text.slice(0, at) + otherCharacter(random, "") + text.slice(at)
  ]
  return changes[random(changes.length)] ?? ""
}

const proved = (session_id: SessionId, rows: ReadonlyArray<EventRow>): number => {
  let at = replayStart(session_id)
  for (const row of rows) {
    const next = replay(at, row)
    if (Result.isFailure(next)) return at.state.rev
    at = next.success
  }
  return at.state.rev
}

/** The text that choird reads of a row's payload, and of a row of before migration 0009 the whole text. */
const textOf = (row: EventRow): string => {
  const { chained, payload } = Result.getOrThrow(readRow(row))
  return payload ?? chained
}
const withText = (row: EventRow, text: string): EventRow =>
  row.canonical === null ? { ...row, body: packPayload(text) } : { ...row, canonical: text }

/** The events of a talk as if its agent had committed them with version 1. */
const ofVersion1 = ({ caller, events }: Talk) => {
  let hash = genesis(caller.session_id)
  return events.map((salted) => {
    const { salt: _, ...event } = salted
    const link = chainEvent(hash, { ...event, v: 1 })
    hash = link.hash
    return link
  })
}

const FORMS: ReadonlyArray<readonly [string, (talk: Talk) => ReadonlyArray<EventRow>]> = [
  ["of version 2", (talk) => talk.links.map(rowOf)],
  ["of version 1", (talk) => ofVersion1(talk).map(rowOf)],
  ["of before migration 0009", (talk) => ofVersion1(talk).map(({ event, hash }) => oldRow(event, hash))]
]

describe.each(FORMS)("a replay of rows %s", (_, rowsOf) => {
  const talk = new Talk(SessionId.make("0000000000000000"), AgentId.make("helper")).turn(1, "grüße 🙂").turn(2)
  const { session_id } = talk.caller
  const rows = rowsOf(talk)
  const before = rows.map((_, index) =>
    rows.slice(0, index).reduce((at, row) => Result.getOrThrow(replay(at, row)), replayStart(session_id))
  )

  const at = (rev: number) =>
    before[rev] ?? rows.slice(-1).reduce((last, row) => Result.getOrThrow(replay(last, row)), before.at(-1)!)

  it(`detects ${MUTATIONS} changes of single bytes, in texts and digests (R12)`, () => {
    const random = seeded(1)
    let detected = 0
    for (let count = 0; count < MUTATIONS; count++) {
      const index = random(rows.length)
      const [row, at] = [rows[index], before[index]]
      if (row === undefined || at === undefined) continue
      const columns = (["canonical", "body", "salt", "lane", "event_type", "created_at", "hash"] as const).filter(
        (key) => (row.canonical === null ? row[key] !== null : key === "canonical" || key === "hash")
      )
      const column = columns[random(columns.length)]!
      // Other bytes may stand for the same text; the text is what is proved.
      const text = column === "body" ? textOf(row) : row[column]
      const bytes = Buffer.from(text as string | Uint8Array)
      const place = random(bytes.length)
      bytes[place] = (bytes[place] ?? 0) ^ (1 + random(255))
      const changed =
        column === "body"
          ? withText(row, bytes.toString("utf8"))
          : { ...row, [column]: typeof text === "string" ? bytes.toString("utf8") : bytes }
      if (Result.isFailure(replay(at, changed))) detected++
    }
    assert.strictEqual(detected, MUTATIONS)
  })

  it("detects each swap, each removal and each repetition (R12)", () => {
    assert.strictEqual(proved(session_id, rows), rows.length)
    for (const [index, row] of rows.entries()) {
      const removed = rows.toSpliced(index, 1)
      if (index < rows.length - 1) assert.strictEqual(proved(session_id, removed), index)
      assert.strictEqual(proved(session_id, rows.toSpliced(index, 0, row)), index + 1)
      for (const [other, second] of rows.entries()) {
        if (other === index) continue
        const swapped = rows.with(index, { ...second, rev: row.rev }).with(other, { ...row, rev: second.rev })
        assert.strictEqual(proved(session_id, swapped), Math.min(index, other))
      }
    }
  })

  it(`detects ${MUTATIONS} changed bytes, swaps, removals and insertions, renumbered or not (R12)`, () => {
    const random = seeded(3)
    const head = at(rows.length)
    const isSound = (from: number, changed: ReadonlyArray<EventRow>): boolean => {
      let proved = at(from)
      for (const row of changed.slice(from)) {
        const next = replay(proved, row)
        if (Result.isFailure(next)) return false
        proved = next.success
      }
      // The session's own row says where the log ends.
      return proved.state.rev === rows.length && proved.hash.equals(head.hash)
    }
    const kinds: ReadonlyArray<(index: number, row: EventRow) => readonly [number, ReadonlyArray<EventRow>]> = [
      (index, row) => [index, rows.with(index, withText(row, mutated(random, textOf(row))))],
      (index, row) => {
        const hash = Buffer.from(row.hash)
        hash[random(hash.length)]! ^= 1 + random(255)
        return [index, rows.with(index, { ...row, hash })]
      },
      (index, row) => {
        const other = (index + 1 + random(rows.length - 1)) % rows.length
        const second = rows[other]!
        return [Math.min(index, other), rows.with(index, second).with(other, row)]
      },
      (index) => [index, rows.toSpliced(index, 1)],
      (index) => [index, rows.toSpliced(index, 0, rows[random(rows.length)]!)]
    ]
    const found = kinds.map(() => 0)
    for (let count = 0; count < MUTATIONS; count++) {
      const index = random(rows.length)
      const kind = count % kinds.length
      const [from, changed] = kinds[kind]!(index, rows[index]!)
      const told = random(2) === 0 ? changed : changed.map((row, place) => ({ ...row, rev: place + 1 }))
      if (!isSound(from, told)) found[kind]! += 1
    }
    assert.deepStrictEqual(
      found,
      kinds.map(() => MUTATIONS / kinds.length)
    )
  })

  it("does not accept another session's log", () => {
    assert.strictEqual(proved(SessionId.make("0000000000000001"), rows), 0)
  })
})

describeStores("session verify", (it, { kind }) => {
  const appendedTalk = Effect.gen(function* () {
    const { append } = yield* EventStore
    const talk = (yield* newTalk).turn(1, 'grüße 🙂 \\ "x"').turn(2)
    yield* append(talk.caller, talk.heartbeat(0))
    return talk
  })

  // The embedded engine takes all of them in its own process; over a socket a tenth shows the same.
  const mutations = kind === "embedded" ? SIZE.changedEvents : SIZE.changedEvents / 10
  it.effect(
    `names the first event of each of ${mutations} changed texts (R12)`,
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { verify } = yield* EventStore
        let talk = yield* appendedTalk
        const random = seeded(2)
        for (let count = 0; count < mutations; count++) {
          // A session for some of them, since every change leaves a dead row that later reads pass over.
          if (count % MUTATIONS_PER_SESSION === 0) talk = yield* appendedTalk
          const { session_id } = talk.caller
          const rev = 1 + random(talk.rev)
          const payload = talk.links[rev - 1]?.payload ?? ""
          const write = (text: string) => sql`UPDATE choir_control.session_events SET body = ${packPayload(text)}
            WHERE session_id = ${session_id} AND rev = ${rev}`
          yield* write(mutated(random, payload))
          const { ok, events, problem } = yield* verify(session_id)
          assert.deepStrictEqual({ ok, events, rev: problem?.rev }, { ok: false, events: rev - 1, rev })
          yield* write(payload)
        }
        assert.isTrue((yield* verify(talk.caller.session_id)).ok)
      }).pipe(Effect.provide(stores)),
    { timeout: 300_000 }
  )

  it.effect("sees what was added, cut off or changed beside the texts (R12)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { verify } = yield* EventStore
      const after = Effect.fnUntraced(function* (change: (session_id: SessionId) => Effect.Effect<unknown, unknown>) {
        const talk = yield* appendedTalk
        yield* change(talk.caller.session_id)
        const { ok, problem } = yield* verify(talk.caller.session_id)
        assert.isFalse(ok)
        return `${problem?.rev} ${problem?.reason.split(" ").slice(0, 4).join(" ")}`
      })
      const events = sql("choir_control.session_events")
      const outcomes = [
        yield* after((id) => sql`DELETE FROM ${events} WHERE session_id = ${id} AND rev = 6`),
        yield* after((id) => sql`DELETE FROM ${events} WHERE session_id = ${id} AND rev = 3`),
        yield* after((id) => sql`DELETE FROM ${events} WHERE session_id = ${id}`),
        yield* after((id) => sql`UPDATE ${events} SET rev = 8 WHERE session_id = ${id} AND rev = 6`),
        yield* after(
          (id) => sql`INSERT INTO ${events} (session_id, rev, v, event_type, lane, created_at, bytes, salt, body, hash)
            SELECT session_id, 7, v, event_type, lane, created_at, bytes, salt, body, hash FROM ${events}
            WHERE session_id = ${id} AND rev = 6`
        ),
        yield* after((id) => sql`UPDATE choir_control.sessions SET last_rev = 5 WHERE session_id = ${id}`),
        yield* after((id) => sql`UPDATE choir_control.sessions SET head_hash = NULL WHERE session_id = ${id}`)
      ]
      assert.deepStrictEqual(outcomes, [
        "5 the database says that",
        "3 the event is missing",
        "0 the database says that",
        "6 the event is missing",
        "7 its digest is " + outcomes[4]?.split(" ")[4],
        "6 the database says that",
        "6 the database says that"
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("sees a changed digest, a changed column and events that changed places (R12)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { verify } = yield* EventStore
      const events = sql("choir_control.session_events")
      const after = Effect.fnUntraced(function* (change: (session_id: SessionId) => Effect.Effect<unknown, unknown>) {
        const { session_id } = (yield* appendedTalk).caller
        yield* change(session_id)
        const { events, ok, problem } = yield* verify(session_id)
        return [ok, events, problem?.reason.split(" ").slice(0, 3).join(" ")]
      })
      const digest = yield* after(
        (id) => sql`UPDATE ${events} SET hash = sha256(hash) WHERE session_id = ${id} AND rev = 4`
      )
      const places = yield* after(
        (id) => sql`UPDATE ${events} AS a SET body = b.body, hash = b.hash FROM ${events} AS b
          WHERE a.session_id = ${id} AND b.session_id = ${id} AND (a.rev, b.rev) IN ((2, 3), (3, 2))`
      )
      const column = (name: string, value: unknown) =>
        after((id) => sql`UPDATE ${events} SET ${sql(name)} = ${value} WHERE session_id = ${id} AND rev = 4`)
      assert.deepStrictEqual(
        [digest, places],
        [
          [false, 3, "its digest is"],
          [false, 1, "its digest is"]
        ]
      )
      for (const [name, value] of [
        ["lane", "core:x"],
        ["event_type", "AgentMessage"],
        ["created_at", "2026-01-01T00:00:00.001Z"],
        ["v", 1],
        ["v", 3],
        ["salt", Buffer.alloc(16)],
        ["payload_digest", Buffer.alloc(32)]
      ] as const)
        assert.deepStrictEqual(yield* column(name, value), [false, 3, "its digest is"], name)
      assert.deepStrictEqual(yield* column("salt", Buffer.alloc(70_000)), [false, 3, "its salt has"])
    }).pipe(Effect.provide(stores))
  )
})
