/** The look at plans where one of them cannot be said: the others go on. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { AgentId } from "#schema/Ids.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { describeStores } from "../../support/engines.ts"
import { alive, ask, clocked, find, look, named, newPlanner, waiting } from "../../support/planners.ts"

/** An agent's plans are in a zone that the host's data have no more. */
const loseZone = (agent_id: AgentId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE choir_control.plans SET zone = 'Europe/Atlantis' WHERE agent_id = ${agent_id}`
  )

/** Makes each step of an agent's plans fail, or no longer. */
const breakSteps = (agent_id: AgentId, isBroken: boolean) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`ALTER TABLE choir_control.plan_slots DROP CONSTRAINT IF EXISTS broken`
    if (isBroken)
      yield* sql.unsafe(
        `ALTER TABLE choir_control.plan_slots ADD CONSTRAINT broken CHECK (agent_id <> '${agent_id}') NOT VALID`
      )
  })

describeStores("the look at plans", (it) => {
  it.effect("goes on beside a plan whose time zone the host does not know, which is paused with that reason", () =>
    Effect.gen(function* () {
      const [lost, well] = [newPlanner(), newPlanner()]
      const plans = yield* Plans
      const { plan } = yield* ask(lost, "every day at 8:00 stretch")
      yield* ask(well, "in 20 minutes take the bread out")
      yield* loseZone(lost)
      yield* plans.realign
      yield* TestClock.adjust("1 day")
      yield* look
      assert.lengthOf(yield* waiting(well), 1)
      const paused = yield* find(lost, plan.plan_id)
      assert.deepInclude(paused, { state: "paused", reason: "its time zone Europe/Atlantis is not known to this host" })
      const refused = yield* Effect.flip(plans.order("resume", named(plan), "operator"))
      assert.deepInclude(refused, { _tag: "PlanRefused", kind: "UNCLEAR_TIME" })
      yield* plans.order("remove", named(plan), "operator")
    }).pipe(alive, clocked)
  )

  it.effect("pauses a plan that failed five times in a row, which is due at the same time once it is resumed", () =>
    Effect.gen(function* () {
      const agent_id = newPlanner()
      const plans = yield* Plans
      const { plan } = yield* ask(agent_id, "every 2 hours stretch")
      const state = Effect.map(find(agent_id, plan.plan_id), (found) => found.state)
      yield* breakSteps(agent_id, true)
      yield* TestClock.adjust("2 hours")
      for (let failed = 0; failed < 4; failed += 1) yield* look
      yield* breakSteps(agent_id, false)
      yield* look
      assert.lengthOf(yield* waiting(agent_id), 1)
      yield* breakSteps(agent_id, true)
      yield* TestClock.adjust("2 hours")
      for (let failed = 0; failed < 4; failed += 1) yield* look
      assert.strictEqual(yield* state, "open")
      yield* TestClock.adjust("1 minute")
      yield* look
      yield* breakSteps(agent_id, false)
      assert.deepInclude(yield* find(agent_id, plan.plan_id), { state: "paused", next_at: "2026-01-02T16:00:00.000Z" })
      yield* plans.order("remove", named(plan), "operator")
    }).pipe(alive, clocked)
  )

  it.effect("tries a plan that failed again after a while, and says it once the reason has passed", () =>
    Effect.gen(function* () {
      const agent_id = newPlanner()
      const plans = yield* Plans
      const { plan } = yield* ask(agent_id, "in 20 minutes take the bread out")
      yield* breakSteps(agent_id, true)
      yield* TestClock.adjust("20 minutes")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* plans.run
          for (let turn = 0; turn < 50; turn += 1) yield* find(agent_id, plan.plan_id)
          assert.strictEqual((yield* find(agent_id, plan.plan_id)).state, "open")
        })
      )
      yield* breakSteps(agent_id, false)
      yield* look
      assert.lengthOf(yield* waiting(agent_id), 1)
    }).pipe(alive, clocked)
  )
})
