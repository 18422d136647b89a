/** How much a lane's window may hold, of the model's context and of what the operator allows. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { windowLimit } from "#src/agent/memory/windowSize.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { configOf } from "../../support/askedModel.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

const SYSTEM = "one two three four five six seven eight nine ten"
const limit = (more: object, window_tokens_max: number | null = null) => {
  const small = { provider: "p", model: "m", endpoint: "http://127.0.0.1:9", context_window: 20_000, ...more }
  const config = configOf({ small }, { memory: { ...agentConfig().memory, window_tokens_max } })
  return windowLimit({ model: "small", tools: [], messages: [{ role: "system", content: SYSTEM }] }).pipe(
    Effect.provide(Layer.merge(AgentSettings.layer(settingsOf(1, config)), TokenCount.layer))
  )
}

describe("the limit of a window", () => {
  it.effect(
    "is a share of what the fixed parts and the longest answer leave, whichever key of the request says it",
    () =>
      Effect.gen(function* () {
        assert.closeTo(yield* limit({ max_tokens: 1000 }), 0.8 * (19_000 - 10), 1)
        const request_template = { max_tokens: null, max_completion_tokens: 8000 }
        assert.closeTo(yield* limit({ max_tokens: 1000, request_template }), 0.8 * (12_000 - 10), 1)
        assert.closeTo(yield* limit({ request_template: { max_tokens: 500 } }), 0.8 * (19_500 - 10), 1)
        assert.strictEqual(yield* limit({ request_template: { max_tokens: 1e9 } }), 0)
      })
  )

  it.effect("is no more than memory.window_tokens_max", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* limit({ max_tokens: 1000 }, 5000), 5000)
      assert.closeTo(yield* limit({ max_tokens: 1000 }, 50_000), 0.8 * (19_000 - 10), 1)
    })
  )
})
