import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentNumbers, derivedNumber, freeNumber } from "#src/choird/sessions/AgentNumbers.ts"
import { AGENT_NUMBERS_MAX } from "#src/shared/docker/agentUids.ts"
import { describeStores } from "../../support/engines.ts"
import { newAgent, stores } from "../../support/stores.ts"

const numberOf = (agent_id: AgentId) => Effect.flatMap(AgentNumbers, (numbers) => numbers.of(agent_id))

describeStores("the number of an agent", (it) => {
  it.effect("is recorded once, and the same for a choird that starts later, wherever its home is then", () =>
    Effect.gen(function* () {
      const one = newAgent()
      const choird = Effect.all([numberOf(one), ConfigStore]).pipe(Effect.provide(Layer.fresh(stores)))
      const [first, { home }] = yield* choird
      const [later, { home: moved }] = yield* choird
      assert.strictEqual(first, derivedNumber(home, one))
      assert.notStrictEqual(moved, home)
      assert.strictEqual(later, first)
    })
  )

  it.effect(
    "is nobody else's, also where it follows from two agents, at once, and after the first has left the home",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { home } = yield* ConfigStore
        const [gone, next, ...others] = [newAgent(), newAgent(), newAgent(), newAgent(), newAgent()]
        const wanted = derivedNumber(home, next)
        yield* sql`INSERT INTO choir_control.agent_numbers ${sql.insert({ agent_id: gone, number: wanted })}`
        yield* sql`DELETE FROM choir_control.agents WHERE agent_id = ${gone}`
        const found = yield* Effect.all([next, ...others, next].map(numberOf), { concurrency: "unbounded" })
        assert.strictEqual(found[0], found.at(-1))
        assert.strictEqual(new Set([wanted, ...found]).size, others.length + 2)
        assert.strictEqual(yield* numberOf(gone), wanted)
      }).pipe(Effect.provide(stores))
  )

  it.effect("is the same again in a database from before it was recorded, for the same home", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = [newAgent(), newAgent(), newAgent()]
      const before = yield* Effect.forEach(agents, numberOf)
      yield* sql`DELETE FROM choir_control.agent_numbers WHERE agent_id IN ${sql.in(agents)}`
      assert.deepStrictEqual(yield* Effect.forEach(agents.toReversed(), numberOf), before.toReversed())
    }).pipe(Effect.provide(stores))
  )
})

describe("freeNumber", () => {
  it("takes the next number that is free, from the first one on after the last, until all are taken", () => {
    const last = AGENT_NUMBERS_MAX - 1
    assert.strictEqual(freeNumber(7, new Set()), 7)
    assert.strictEqual(freeNumber(7, new Set([7, 8])), 9)
    assert.strictEqual(freeNumber(last, new Set([last])), 0)
    assert.isUndefined(freeNumber(0, new Set(Array.from({ length: AGENT_NUMBERS_MAX }, (_, number) => number))))
  })
})
