import { assert } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { describeEngines } from "../../support/engines.ts"

const ACCOUNTS = 20
const TRANSFERS = 200
const AT_ONCE = 16
const START = 100

/** The same choices in each run. */
const seeded = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

describeEngines("Concurrent transactions", (it) => {
  it.effect("neither mix nor leave halves, whether they fail, nest or are interrupted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE account (id int PRIMARY KEY, balance int)`
      yield* sql`CREATE TABLE journal (id int PRIMARY KEY)`
      yield* sql`INSERT INTO account SELECT i, ${START}::int FROM generate_series(1, ${ACCOUNTS}::int) i`
      const random = seeded(7)
      const move = (id: number, amount: number) =>
        sql`UPDATE account SET balance = balance + ${amount} WHERE id = ${id}`

      const transfer = Effect.fnUntraced(function* (number: number) {
        const [low, high] = [1 + random(ACCOUNTS), 1 + random(ACCOUNTS)].sort((a, b) => a - b)
        const fate = random(10)
        const begun = yield* Deferred.make<void>()
        const work = Effect.gen(function* () {
          yield* move(low ?? 1, -1)
          yield* Deferred.succeed(begun, undefined)
          if (fate === 0) yield* sql`SELECT 1 / 0`
          if (fate === 1) yield* Effect.yieldNow
          yield* Effect.ignore(sql.withTransaction(sql`INSERT INTO journal VALUES (0), (0)`))
          yield* move(high ?? 1, 1)
          yield* sql`INSERT INTO journal VALUES (${number})`
          if (fate === 2) return yield* Effect.fail("changed its mind")
          return undefined
        })
        const fiber = yield* Effect.forkChild(sql.withTransaction(work))
        if (fate >= 8) {
          yield* Effect.raceFirst(Deferred.await(begun), Effect.exit(Fiber.join(fiber)))
          yield* Fiber.interrupt(fiber)
        }
        const exit = yield* Fiber.await(fiber)
        const [sum] = yield* sql<{ sum: number }>`SELECT sum(balance)::int AS sum FROM account`
        const [echo] = yield* sql<{ echo: number }>`SELECT ${number}::int AS echo`
        assert.strictEqual(sum?.sum, ACCOUNTS * START)
        assert.strictEqual(echo?.echo, number)
        if (Exit.isFailure(exit)) assert.isFalse(Cause.hasDies(exit.cause), Cause.pretty(exit.cause))
        return { number, committed: Exit.isSuccess(exit), interrupted: fate >= 8 }
      })
      const numbers = Array.from({ length: TRANSFERS }, (_, index) => index + 1)
      const results = yield* Effect.forEach(numbers, transfer, { concurrency: AT_ONCE })

      const journal = new Set((yield* sql<{ id: number }>`SELECT id FROM journal`).map(({ id }) => id))
      assert.isFalse(journal.has(0))
      for (const { committed, interrupted, number } of results) {
        // An interruption may come after the commit has become final.
        if (!interrupted || committed) assert.strictEqual(journal.has(number), committed)
      }
      assert.isAbove(journal.size, TRANSFERS / 2)
    })
  )

  it.effect("stream a result that is larger than a buffer", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = sql`SELECT repeat('x', 1000) AS text FROM generate_series(1, 5000)`.stream
      assert.strictEqual(yield* Stream.runCount(rows), 5000)
      assert.strictEqual(yield* rows.pipe(Stream.take(10), Stream.runCount), 10)
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    })
  )

  it.effect("carry text, JSON, bytes and large numbers unchanged", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const value = {
        text: "ünï ' \" \\ 🎵",
        bytes: new Uint8Array([0, 1, 255]),
        big: 9_007_199_254_740_993n,
        json: { nested: ["💾", null, 1.5] }
      }
      const rows =
        yield* sql`SELECT ${value.text}::text AS text, ${value.bytes}::bytea AS bytes, ${value.big}::bigint AS big,
        ${JSON.stringify(value.json)}::jsonb AS json`
      assert.deepStrictEqual(
        rows.map((row) => ({ ...row, bytes: new Uint8Array(row["bytes"] as Uint8Array) })),
        [value]
      )
    })
  )
})
