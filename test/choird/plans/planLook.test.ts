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
})
