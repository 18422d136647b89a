import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { modelEntry, modelsOf } from "#src/choirctl/home/initHome.ts"
import { knownModel, knownPrice } from "#src/choirctl/home/knownModels.ts"
import { apiAt, hasOwnAddress, presetOf, PROVIDERS } from "#src/choirctl/home/providers.ts"
import { answerTokensOf, quirkWarnings } from "#src/shared/model/quirks.ts"

const MAIN = ResourceName.make("main")
const FALLBACK = ResourceName.make("fallback")
const decodeConfig = Schema.decodeUnknownSync(Config)
const SETUP = {
  provider: "openai",
  endpoint: "https://api.openai.com/v1",
  api: "responses",
  name: "gpt-4o",
  secret: "openai-key",
  key: undefined,
  price: { input: 9, output: 9 }
} as const

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
        price: { input: 0.15, output: 0.6, cache_read: 0.075 },
        secret: "openai-key"
      }
    )
  })

  it("may be one model under two names, at one price", () => {
    const { models } = decodeConfig({ global_repo: { url: "/g" }, models: modelsOf({ ...SETUP, fallback: "gpt-4o" }) })
    assert.deepStrictEqual(models[FALLBACK]?.price, SETUP.price)
  })
})

describe("a provider of the wizard's list", () => {
  it.each(PROVIDERS.filter((provider) => !hasOwnAddress(provider)))(
    "%s has an address, an API and a model that config.json takes without a warning",
    (provider) => {
      const { api, endpoint = "", model } = presetOf(provider)
      assert.strictEqual(apiAt(provider, endpoint), api)
      const price = knownPrice(provider, model)
      const { models } = decodeConfig({
        global_repo: { url: "/g" },
        models: modelsOf({ provider, endpoint, api, name: model, secret: undefined, key: undefined, price })
      })
      const made = models[MAIN]
      assert.deepStrictEqual(made === undefined ? undefined : quirkWarnings(made), [])
      assert.isAtMost(made === undefined ? Infinity : answerTokensOf(made), (made?.context_window ?? 0) / 2)
    }
  )

  it.each(["openrouter", "openai", "anthropic", "gemini", "kimi"] as const)(
    "%s has the price and the context of its first model",
    (provider) => {
      const known = knownModel(provider, presetOf(provider).model)
      assert.isAbove(known?.price.output ?? 0, known?.price.input ?? 1)
      assert.isBelow(known?.price.cache_read ?? 9, known?.price.input ?? 0)
    }
  )

  it.each(["deepseek", "mistral", "local"] as const)(
    "%s lets its first model write a file in one answer",
    (provider) => {
      const { api, endpoint = "http://127.0.0.1:11434/v1", model: name } = presetOf(provider)
      const main = modelEntry({ provider, endpoint, api, name, secret: undefined, price: undefined })
      const made = decodeConfig({ global_repo: { url: "/g" }, models: { main } }).models[MAIN]
      assert.isAtLeast(made === undefined ? 0 : answerTokensOf(made), 8000)
    }
  )

  it("is known by its address as well", () => {
    assert.strictEqual(apiAt("other", "https://api.anthropic.com/v1"), "messages")
    assert.strictEqual(apiAt("other", "https://api.openai.com/v1"), "responses")
    for (const endpoint of ["http://127.0.0.1:9/v1", "https://api.anthropic.com.example.org/v1", "none"])
      assert.strictEqual(apiAt("other", endpoint), "chat")
  })
})
