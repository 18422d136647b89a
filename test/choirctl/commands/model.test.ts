import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict } from "#schema/ApiError.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { agentModels, fakeChoird } from "../../support/fakeChoird.ts"

describe("choirctl model", () => {
  it.effect("lists what there is and shows what an agent uses beside its defaults", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const list = yield* choirctl(home, ["model", "list"])
      assert.strictEqual(list.out, "NAME    TYPE  PROVIDER  MODEL\nsonnet  llm   p         m\n")
      const shown = yield* choirctl(home, ["model", "get", "agent-1"])
      assert.match(shown.out, /edge +opus \(default sonnet\)\ncore jobs +sonnet\n/u)
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
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ llm: "opus" }, { llm: "opus", core_llm: "sonnet" }, { core_llm: "sonnet" }]
      )
      for (const args of [[], ["--llm", "No Name"]])
        assert.strictEqual((yield* choirctl(home, ["model", "set", "agent-1", ...args])).code, 2)
      assert.lengthOf(calls, 3)
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
