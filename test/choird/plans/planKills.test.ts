/** choird dies at each statement of its look at plans, or the database does not answer there: the next life says each time once. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { describeStores } from "../../support/engines.ts"
import { alive, ask, at, clocked, find, look, newPlanner, waiting } from "../../support/planners.ts"

const away = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("the connection ended") })
})
const ENDS = { killed: Effect.interrupt, away: Effect.fail(away) }

/** The database of the context, whose statement of this number is the last of a life. */
const endsAt = (number: number, how: keyof typeof ENDS) =>
  Effect.map(SqlClient.SqlClient, (sql) => {
    let statements = 0
    return new Proxy(sql, {
      apply: (target, self, args) => {
        statements += 1
        return statements < number ? Reflect.apply(target, self, args) : ENDS[how]
      }
    })
  })

describeStores("a reminder whose choird dies", (it) => {
  for (const how of ["killed", "away"] as const)
    it.effect(`at any statement of the look is said once in the next life (${how})`, () =>
      Effect.gen(function* () {
        let ends = 0
        for (let number = 1; ; number += 1) {
          yield* at("2026-01-02T12:00:00Z")
          const agent_id = newPlanner()
          const { plan } = yield* alive(ask(agent_id, "every day at 8:00 stretch"))
          yield* at("2026-01-03T07:00:00Z")
          const sql = yield* endsAt(number, how)
          const exit = yield* Effect.exit(Effect.provideService(alive(look), SqlClient.SqlClient, sql))
          if (exit._tag === "Failure") ends += 1
          yield* TestClock.adjust("20 seconds")
          yield* alive(look)
          yield* alive(look)
          assert.deepStrictEqual(yield* waiting(agent_id), ["Reminder 1: stretch"], `statement ${number}`)
          assert.strictEqual((yield* alive(find(agent_id, plan.plan_id))).next_at, "2026-01-04T07:00:00.000Z")
          if (exit._tag === "Success") break
        }
        assert.isAtLeast(ends, 6)
      }).pipe(clocked)
    )
})
