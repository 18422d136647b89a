import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { modelRows } from "#src/choird/api/operator/modelRows.ts"
import { CONFIG } from "../../../support/stores.ts"

describe("the models of a configuration", () => {
  it("are listed with the agents that use them by default, with what answers for them, and with their prices", () => {
    const { large, other, small } = CONFIG.models
    const agent = (llm: string, core_llm = llm) => ({
      repo: { url: "/srv/a" },
      defaults: { workspace: "main", llm, core_llm }
    })
    const config = Schema.decodeUnknownSync(Config)({
      ...CONFIG,
      models: { large, other, small: { ...small, price: { input: 3, output: 15 } } },
      agents: { ada: agent("small"), bob: agent("small", "large") }
    })
    assert.deepStrictEqual<unknown>(modelRows(config), [
      { name: "large", type: "llm", provider: "test", model: "l", default_of: ["bob"], fallback: ["small"] },
      { name: "other", type: "llm", provider: "test", model: "o", default_of: [], fallback: [] },
      {
        name: "small",
        type: "llm",
        provider: "test",
        model: "s",
        default_of: ["ada", "bob"],
        fallback: ["large"],
        price: { input: 3, output: 15 }
      }
    ])
  })
})
