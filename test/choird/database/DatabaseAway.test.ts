import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient, SqlError } from "effect/sql"
import { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { retryDatabase, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { afterOutage } from "#src/choird/agents/runNotices.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { stored } from "../../support/awayDatabase.ts"
import { BINDINGS, CONFIG } from "../../support/stores.ts"

describe("a database that is away", () => {
  for (const outage of ["6 minutes", "3 hours", "2 days"] as const)
    it.effect(`waits out ${outage}, asks at most once a minute in the end, and continues within a minute`, () =>
      Effect.gen(function* () {
        const world = { away: true }
        let asked = 0
        const work = Effect.andThen(
          Effect.sync(() => void asked++),
          stored(world, "done")
        )
        const fiber = yield* Effect.forkChild(retryDatabase(work), { startImmediately: true })
        yield* TestClock.adjust(outage)
        assert.isUndefined(fiber.pollUnsafe())
        const before = asked
        yield* TestClock.adjust("10 minutes")
        assert.isAtMost(asked - before, 10)
        world.away = false
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), "done")
      })
    )

  it.effect("waits for a server that is full or starting, and for no mistake of a statement", () =>
    Effect.gen(function* () {
      const failure = (code: string) =>
        new SqlError.SqlError({
          reason: new SqlError.UnknownError({ cause: Object.assign(new Error("no"), { code }) })
        })
      const onDatabase = yield* Effect.provideService(useDatabase, SqlClient.SqlClient, undefined as never)
      for (const code of ["53100", "57P03"]) {
        let away = true
        const work = onDatabase(Effect.suspend(() => (away ? Effect.fail(failure(code)) : Effect.succeed(1))))
        const fiber = yield* Effect.forkChild(retryDatabase(work), { startImmediately: true })
        yield* TestClock.adjust("1 hour")
        away = false
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), 1)
      }
      const exit = yield* Effect.exit(retryDatabase(onDatabase(Effect.fail(failure("42601")))))
      assert.strictEqual(exit._tag, "Failure")
    })
  )

  it.effect("tells the DM of an outage that kept the agent away, once the database is back", () =>
    Effect.gen(function* () {
      const world = { away: true }
      const told: Array<string> = []
      const config = Schema.decodeUnknownSync(Config)(CONFIG)
      const services = Layer.mergeAll(
        Layer.mock(ConfigStore, { home: "/h", current: Effect.succeed({ config, version: 1 }) }),
        Layer.mock(Outbox, {
          notify: ({ text }) =>
            Effect.andThen(
              stored(world, 0),
              Effect.sync(() => void told.push(text))
            )
        })
      )
      const context = { agent_id: AgentId.make("helper"), bindings: BINDINGS }
      const read = retryDatabase(stored(world, Option.none()))
      const fiber = yield* Effect.forkChild(Effect.provide(afterOutage(context, read), services), {
        startImmediately: true
      })
      yield* TestClock.adjust("40 minutes")
      world.away = false
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.lengthOf(told, 1)
      assert.match(told[0] ?? "", /^My database did not answer for 4[01] min, so I could not work/u)
      yield* Effect.provide(afterOutage(context, read), services)
      assert.lengthOf(told, 1)
    })
  )
})
