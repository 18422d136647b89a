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
  readonly payload: { readonly usage?: { readonly cost_usd?: number }; readonly purpose?: string }
}

const config = ({ endpoint, home }: { readonly endpoint: string; readonly home: string }) => ({
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

const SUMMARY = { title: "Questions", summary: "Ada asks for numbers.", decisions: [], open_points: [], facts: [] }

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
        config
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
      const costsOf = (wanted: (purpose: string | undefined) => boolean) =>
        lines.flatMap(({ payload: { purpose, usage } }) => (wanted(purpose) ? (usage?.cost_usd ?? []) : []))
      // The summary, which the next session continues from, is paid beyond the limit.
      const costs = costsOf((purpose) => purpose !== "summary")
      const spent = costs.reduce((sum, cost) => sum + cost, 0)
      assert.isAtLeast(spent, MAX_COST_USD)
      assert.isBelow(spent - (costs.at(-1) ?? 0), MAX_COST_USD, "only the last call passed the limit")
      const { calls: answered } = yield* provider.summary
      assert.strictEqual(answered, costsOf(() => true).length, "every call that was answered is counted")

      const next = yield* choirctl(choir.home, ["chat", "demo", "--message", "a new day"])
      assert.include(next.out, "Good morning.")
    }).pipe(Effect.scoped)
  )

  it.live("answers each message of a long conversation, the one that meets a limit in the next session", () =>
    Effect.gen(function* () {
      const provider = yield* makeProviderOf({ dialect: "anthropic", counts: true })
      const begins: Array<string> = []
      yield* provider.otherwise(({ body }) => {
        const text = JSON.stringify(body)
        if (text.includes('"name":"choir-session-summary"'))
          return callTools([{ name: "choir-session-summary", input: SUMMARY }], "")
        const [asked = ""] = text.match(/question \d/gu)?.slice(-1) ?? []
        if (text.includes(SUMMARY.summary)) begins.push(asked)
        return answer(`The answer to ${asked}. ${"It is a long one. ".repeat(120)}`)
      })
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint, config })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      let out = ""
      for (let number = 1; number <= 6; number += 1) {
        const said = yield* choirctl(choir.home, ["chat", "demo", "--message", `question ${number}`])
        assert.include(said.out, `The answer to question ${number}.`, said.err)
        out += said.out + said.err
      }
      assert.match(out, /continues in a new session/u)
      assert.isAtLeast((yield* choir.api.sessions.list({ query: {} })).length, 2)
      assert.isNotEmpty(begins, "a session that knows the summary of the one before")
    }).pipe(Effect.scoped)
  )
})
