import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { modelsOf } from "#src/choirctl/home/initHome.ts"

const MAIN = ResourceName.make("main")
const FALLBACK = ResourceName.make("fallback")
const decodeConfig = Schema.decodeUnknownSync(Config)
const SETUP = {
  provider: "openai",
  endpoint: "https://api.openai.com/v1",
  name: "gpt-4o",
  secret: "openai-key",
  key: undefined,
  price: { input: 9, output: 9 }
}

describe("the models of a new home", () => {
  it("are one without a fallback, and two with it, at one endpoint and with one key", () => {
    assert.deepStrictEqual(Object.keys(modelsOf(SETUP)), ["main"])
    const { models } = decodeConfig({
      global_repo: { url: "/g" },
      models: modelsOf({ ...SETUP, fallback: "gpt-4o-mini" })
    })
    assert.deepStrictEqual<unknown>(models[MAIN]?.fallback, ["fallback"])
    const { endpoint, fallback, model, price, secret } = models[FALLBACK] ?? {}
    assert.deepStrictEqual<unknown>(
      { endpoint, fallback, model, price, secret },
      {
        endpoint: SETUP.endpoint,
        fallback: [],
        model: "gpt-4o-mini",
        price: { input: 0.15, output: 0.6 },
        secret: "openai-key"
      }
    )
  })

  it("may be one model under two names, at one price", () => {
    const { models } = decodeConfig({ global_repo: { url: "/g" }, models: modelsOf({ ...SETUP, fallback: "gpt-4o" }) })
    assert.deepStrictEqual(models[FALLBACK]?.price, SETUP.price)
  })
})
