import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { AgentId } from "#schema/Ids.ts"
import {
  Audit,
  AUDIT_DETAIL_BYTES_MAX,
  AUDIT_RETRY_MS,
  AUDIT_SUMS_MAX,
  AUDIT_WINDOW_MS,
  makeAuditSums
} from "#src/choird/logs/Audit.ts"
import { describeStores } from "../../support/engines.ts"
import { newTalk, stores } from "../../support/stores.ts"

/** Of an agent's rows the refusal, how often it was, and the number in its detail. */
const counts = (agent_id: AgentId) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Audit).last({ count: 100, agent_id })
    return rows.map(({ count, detail }) => {
      const { n, refused = "done" } = detail as { readonly refused?: string; readonly n?: number }
      return [refused, count, ...(n === undefined ? [] : [n])].join(" ")
    })
  })

/** The clock wakes what writes; the database answers when it does. */
const counted = (agent_id: AgentId, rows: number) =>
  Effect.repeat(counts(agent_id), { until: ({ length }) => length >= rows })

const numbers = (agent_id: AgentId) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Audit).last({ count: 100, agent_id })
    return rows.map(({ detail }) => (detail as { readonly n: number }).n)
  })

/** Wakes the writer of the rows that were kept, until the last of them is there. */
const retried = (agent_id: AgentId, last: number) =>
  Effect.repeat(Effect.andThen(TestClock.adjust(AUDIT_RETRY_MS), numbers(agent_id)), {
    until: (there) => there.includes(last)
  })

const ADA = AgentId.make("ada")
const EVE = AgentId.make("eve")

/** New stores whose waits a test ends. */
const onTestClock = Layer.fresh(stores).pipe(Layer.provideMerge(TestClock.layer()))

describeStores("Audit", (it) => {
  const rowsOf = (who: string) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`SELECT action, session_id, agent_id, detail FROM choir_control.audit WHERE who = ${who} ORDER BY id`
    )

  it.effect("keeps a row for each entry, storable and bounded (R77)", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { agent_id, session_id } = (yield* newTalk).caller
      const who = `agent:${agent_id}`
      yield* audit.record({ who, action: "rpc.HEARTBEAT", agent_id, session_id, detail: { why: "a\0b\uD800" } })
      yield* audit.record({ who, action: "rpc.HEARTBEAT", detail: { why: "x".repeat(AUDIT_DETAIL_BYTES_MAX) } })
      assert.deepStrictEqual(yield* rowsOf(who), [
        { action: "rpc.HEARTBEAT", session_id, agent_id, detail: { why: "a\uFFFDb\uFFFD" } },
        {
          action: "rpc.HEARTBEAT",
          session_id: null,
          agent_id: null,
          detail: { left_out_bytes: AUDIT_DETAIL_BYTES_MAX + 10 }
        }
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("logs what it could not write, and stops nothing", () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => logged.push(message))
      const audit = yield* Audit
      yield* audit
        .record({ who: "operator", action: "config.apply", detail: { value: Number.NaN } })
        .pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(logged, [
        ["an audit row was not written", { who: "operator", action: "config.apply", count: 1 }]
      ])
    }).pipe(Effect.provide(Layer.fresh(stores)))
  )

  it.effect("sums a flood of one refusal: a row at once, and one more for each minute of it (R77)", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { agent_id } = (yield* newTalk).caller
      const who = `agent:${agent_id}`
      const refuse = (refused: string, n: number) =>
        audit.record({ who, action: "rpc.HEARTBEAT", agent_id, detail: { refused, n } })
      for (let n = 0; n < 500; n += 1) yield* refuse("AUTH", n)
      yield* refuse("TOO_LARGE", 0)
      yield* audit.record({ who, action: "model.set", agent_id, detail: { llm: "a" } })
      yield* audit.record({ who, action: "model.set", agent_id, detail: { llm: "b" } })
      assert.deepStrictEqual(yield* counts(agent_id), ["AUTH 1 0", "TOO_LARGE 1 0", "done 1", "done 1"])
      yield* TestClock.adjust(AUDIT_WINDOW_MS)
      assert.deepStrictEqual((yield* counted(agent_id, 5)).slice(4), ["AUTH 499 499"])
      yield* refuse("AUTH", 500)
      assert.strictEqual((yield* counts(agent_id)).length, 5)
      yield* TestClock.adjust(AUDIT_WINDOW_MS)
      yield* counted(agent_id, 6)
      yield* TestClock.adjust(AUDIT_WINDOW_MS)
      yield* refuse("AUTH", 501)
      assert.deepStrictEqual((yield* counts(agent_id)).slice(5), ["AUTH 1 500", "AUTH 1 501"])
    }).pipe(Effect.provide(onTestClock))
  )

  it.effect("keeps what the database does not take, and writes it once, in its order, when it is back (R77)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const audit = yield* Audit
      const { agent_id } = (yield* newTalk).caller
      const record = (n: number) => audit.record({ who: "operator", action: "x", agent_id, detail: { n } })
      yield* record(1)
      // A table under another name is a database that refuses; the rename back is its return.
      yield* Effect.acquireUseRelease(
        sql`ALTER TABLE choir_control.audit RENAME TO audit_away`,
        () => Effect.forEach([2, 3, 4], record),
        () => Effect.orDie(sql`ALTER TABLE choir_control.audit_away RENAME TO audit`)
      )
      assert.deepStrictEqual(yield* numbers(agent_id), [1])
      yield* record(5)
      yield* retried(agent_id, 5)
      assert.deepStrictEqual(yield* numbers(agent_id), [1, 2, 3, 4, 5])
    }).pipe(Effect.provide(onTestClock))
  )

  it.effect("writes a row once whose first try only lost its answer (R77)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const audit = yield* Audit
      const { agent_id } = (yield* newTalk).caller
      const record = (n: number) => audit.record({ who: "operator", action: "x", agent_id, detail: { n } })
      yield* Effect.acquireUseRelease(
        sql`ALTER TABLE choir_control.audit RENAME TO audit_away`,
        () => Effect.forEach([1, 2], record),
        () => Effect.orDie(sql`ALTER TABLE choir_control.audit_away RENAME TO audit`)
      )
      yield* sql`INSERT INTO choir_control.audit (since, who, action, agent_id, detail)
        VALUES (to_timestamp(0), 'operator', 'x', ${agent_id}, '{"n": 1}')`
      yield* retried(agent_id, 2)
      assert.deepStrictEqual(yield* numbers(agent_id), [1, 2])
    }).pipe(Effect.provide(onTestClock))
  )

  it.effect("writes what it counted when it stops", () =>
    Effect.gen(function* () {
      const { agent_id } = (yield* Effect.provide(newTalk, stores)).caller
      const twice = Effect.gen(function* () {
        const audit = yield* Audit
        for (const n of [1, 2])
          yield* audit.record({ who: "operator", action: "x", agent_id, detail: { refused: "Y", n } })
      })
      yield* Effect.provide(twice, Layer.fresh(stores))
      assert.deepStrictEqual(yield* Effect.provide(counts(agent_id), stores), ["Y 1 1", "Y 1 2"])
    })
  )
})

describe("sums of audited actions", () => {
  it("count what an agent repeats at will like refusals, and leave other actions their rows (R77)", () => {
    const sums = makeAuditSums()
    const asked = { who: "agent:ada", action: "approval.request", detail: { type: "tool" }, repeats: "tool" }
    const written = [1, 2, 3].map(() => sums.note(asked, 0) !== undefined)
    assert.deepStrictEqual(written, [true, false, false])
    assert.isDefined(sums.note({ ...asked, repeats: "skill" }, 0))
    const start = { who: "operator", action: "agents.start", detail: {} }
    assert.deepStrictEqual(
      [1, 2].map(() => sums.note(start, 0)?.count),
      [1, 1]
    )
    assert.deepStrictEqual(
      sums.due(AUDIT_WINDOW_MS).map(({ count, entry }) => `${entry.action} ${count}`),
      ["approval.request 2"]
    )
  })

  it("distinguish the kinds of one asker after another has filled its share (R77)", () => {
    const sums = makeAuditSums()
    for (let index = 0; index < 10 * AUDIT_SUMS_MAX; index += 1)
      sums.note({ who: "agent:eve", action: `a${index}`, agent_id: EVE, detail: { refused: "AUTH" } }, 0)
    const refusal = { who: "agent:ada", action: "rpc.HEARTBEAT", agent_id: ADA, detail: { refused: "AUTH" } }
    assert.isDefined(sums.note(refusal, 0))
    sums.note(refusal, 0)
    sums.note({ ...refusal, action: "events" }, 0)
    const due = sums.due(AUDIT_WINDOW_MS).map(({ count, entry }) => `${entry.who} ${count}`)
    assert.deepStrictEqual(due, [`agent:eve ${9 * AUDIT_SUMS_MAX - 1}`, "agent:ada 1"])
  })

  it("are bounded, however many kinds a flood has (R77)", () => {
    const sums = makeAuditSums()
    let rows = 0
    for (let index = 0; index < 10 * AUDIT_SUMS_MAX; index += 1) {
      const entry = { who: `agent:${index}`, action: "rpc.HEARTBEAT", detail: { refused: "AUTH" } }
      if (sums.note(entry, 0) !== undefined) rows += 1
    }
    assert.strictEqual(rows, AUDIT_SUMS_MAX + 1)
    const due = sums.due(AUDIT_WINDOW_MS)
    assert.deepStrictEqual(
      due.map(({ count }) => count),
      [9 * AUDIT_SUMS_MAX - 1]
    )
    assert.deepStrictEqual(sums.due(AUDIT_WINDOW_MS), [])
    assert.isDefined(sums.note({ who: "new", action: "x", detail: { refused: "AUTH" } }, 2 * AUDIT_WINDOW_MS))
  })
})
