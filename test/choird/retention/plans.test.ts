/** What retention leaves of reminders. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Plans } from "#src/choird/plans/Plans.ts"
import { describeStores } from "../../support/engines.ts"
import { pruned, retentionWith } from "../../support/retention.ts"
import { newAgent, PHONE } from "../../support/stores.ts"

describeStores("Retention of reminders", (it) => {
  it.effect("removes what is over and gives no number twice, and what waits stays however old", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const plans = yield* Plans
      const agent_id = newAgent()
      const make = (words: string) =>
        plans.make({ agent_id, dm: PHONE, words, labelled: false, made_by: "operator", request: words })
      const names = []
      for (const words of ["in 2 hours a", "in 3 hours b", "in 4 hours c", "in 5 hours d"]) {
        const { plan } = yield* make(words)
        names.push({ agent_id, plan_id: plan.plan_id })
      }
      for (const named of names.filter(({ plan_id }) => plan_id !== 2)) yield* plans.order("remove", named, "operator")
      yield* sql`UPDATE choir_control.plans SET changed_at = changed_at - interval '5000 days'`
      assert.deepInclude(yield* pruned(), { plans: 2 })
      const left = yield* plans.list(agent_id, true)
      assert.deepStrictEqual(
        left.map(({ plan_id, state }) => `${plan_id} ${state}`),
        ["2 open", "4 removed"]
      )
      // A button below an old message names its plan by number.
      assert.strictEqual(Number((yield* make("in 6 hours e")).plan.plan_id), 5)
    }).pipe(Effect.provide(retentionWith({ runs_days: 90 })))
  )

  it.effect("leaves no word about a message whose proof of delivery is gone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const plans = yield* Plans
      const agent_id = newAgent()
      const words = "in 2 hours a"
      const { plan } = yield* plans.make({
        agent_id,
        dm: PHONE,
        words,
        labelled: false,
        made_by: "operator",
        request: words
      })
      yield* sql`INSERT INTO choir_control.plan_slots (agent_id, plan_id, slot, state, missed)
        VALUES (${agent_id}, ${plan.plan_id}, now() - interval '200 days', 'said', 0)`
      assert.isNull((yield* plans.find(plan)).last)
    }).pipe(Effect.provide(retentionWith({ runs_days: 90 })))
  )
})
