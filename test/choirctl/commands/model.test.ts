import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict } from "#schema/ApiError.ts"
import { ResourceName } from "#schema/Ids.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { agentModels, detail, fakeChoird } from "../../support/fakeChoird.ts"

describe("choirctl model", () => {
  it.effect("lists what there is and shows what an agent uses beside its defaults", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const list = yield* choirctl(home, ["model", "list"])
      assert.strictEqual(
        list.out,
        [
          "NAME    TYPE  PROVIDER  MODEL  DEFAULT OF  FALLBACK  USD IN/OUT",
          "sonnet  llm   p         m      agent-1     opus      3/15",
          "opus    llm   p         o      -           -         -",
          ""
        ].join("\n")
      )
      const shown = yield* choirctl(home, ["model", "get", "agent-1"])
      assert.match(shown.out, /edge +opus \(default sonnet\)\ncore jobs +sonnet\n/u)
      assert.match(shown.out, /until +the next start, which takes the default; model set --default makes it last\n/u)
      const asJson = yield* choirctl(home, ["model", "get", "agent-1", "--json"])
      assert.deepStrictEqual(document(asJson), agentModels)
    })
  )

  it.effect("sets what is named and nothing else", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["model", "set", "agent-1", "--llm=opus"])
      yield* choirctl(home, ["model", "set", "agent-1", "--core-llm", "sonnet", "--llm", "opus"])
      yield* choirctl(home, ["model", "set", "agent-1", "--core-llm", "sonnet"])
      const sets = () => calls.filter(({ name }) => name !== "agent")
      assert.deepStrictEqual(
        sets().map(({ input }) => input),
        [{ llm: "opus" }, { llm: "opus", core_llm: "sonnet" }, { core_llm: "sonnet" }]
      )
      for (const args of [[], ["--llm", "No Name"]])
        assert.strictEqual((yield* choirctl(home, ["model", "set", "agent-1", ...args])).code, 2)
      assert.lengthOf(sets(), 3)
    })
  )

  it.effect("warns of a model without a price where the cost is limited", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const cost_usd = { used: 0, limit: 5, unpriced: [ResourceName.make("opus")] }
      yield* fakeChoird(home, { agent: Effect.succeed({ ...detail, budgets: { ...detail.budgets, cost_usd } }) })
      const ran = yield* choirctl(home, ["model", "set", "agent-1", "--llm=opus"])
      assert.include(ran.err, "warning: opus has no price, so its calls do not count towards budgets.max_cost_usd (5)")
    })
  )

  it.effect("repeats a refusal with what helps", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const error = { type: "NOT_READY", message: 'there is no llm "x"', hint: "choose one of small" }
      yield* fakeChoird(home, { agentModels: Effect.fail(new Conflict({ error })) })
      const ran = yield* choirctl(home, ["model", "set", "agent-1", "--llm", "x", "--json"])
      assert.strictEqual(ran.code, 1)
      assert.deepStrictEqual(document(ran), { ok: false, error })
    })
  )
})
