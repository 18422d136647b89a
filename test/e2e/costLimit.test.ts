/** A limit of cost in whole processes: the session ends within one call of it, says so, and the next message begins another. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { answer, callTools, makeProviderOf } from "../support/testing/Provider.ts"

const PRICE = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
const MAX_COST_USD = 0.05

interface Line {
  readonly event_type: string
  readonly payload: { readonly usage?: { readonly cost_usd?: number }; readonly text?: string }
}

describe("max_cost_usd", () => {
  it.live("stops a session within one call, tells the person, and lets the next message begin another session", () =>
    Effect.gen(function* () {
      const provider = yield* makeProviderOf({ dialect: "anthropic", counts: true })
      let calls = 0
      yield* provider.otherwise(({ body }) => {
        if (JSON.stringify(body).includes("a new day")) return answer("Good morning.")
        calls += 1
        return callTools([{ name: "choir-fs-find", input: { glob: `*${calls}*` } }], "I go on looking. ".repeat(100))
      })
      const choir = yield* makeTestInstallation({
        endpoint: provider.endpoint,
        config: ({ endpoint, home }) => ({
          heartbeat_interval_ms: 200,
          models: {
            test: {
              provider: "test",
              api: "messages",
              model: "claude-sonnet-4-5",
              endpoint,
              price: PRICE,
              max_tokens: 1000
            }
          },
          budgets: { max_cost_usd: MAX_COST_USD, turn_max_steps: 200, message_max_steps: 200 },
          agents: {
            demo: {
              repo: { url: join(home, "sources/agent") },
              defaults: { workspace: "main", llm: "test", dm: "me" }
            }
          }
        })
      })
      yield* choir.start
      yield* choir.build
      const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
      const ran = yield* choirctl(choir.home, ["chat", "demo", "--message", "look for everything"])
      assert.match(`${ran.out}${ran.err}`, /limit of 0\.05 USD \(budgets\.max_cost_usd\) is reached/u)

      const printed = yield* choirctl(choir.home, ["session", "events", session_id ?? "", "--json"])
      const lines = printed.out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Line)
      const costs = lines.flatMap(({ payload }) => payload.usage?.cost_usd ?? [])
      const spent = costs.reduce((sum, cost) => sum + cost, 0)
      assert.isAtLeast(spent, MAX_COST_USD)
      assert.isBelow(spent - (costs.at(-1) ?? 0), MAX_COST_USD, "only the last call passed the limit")
      const { calls: answered } = yield* provider.summary
      assert.strictEqual(answered, costs.length, "every call that was answered is counted")

      const next = yield* choirctl(choir.home, ["chat", "demo", "--message", "a new day"])
      assert.include(next.out, "Good morning.")
    }).pipe(Effect.scoped)
  )
})
