/** How much a lane's window may hold, of the model's context and of what the operator allows, and how much it holds. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { isClearlySmall, promptTokens, windowLimit } from "#src/agent/memory/windowSize.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { configOf } from "../../support/askedModel.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"
import { EDGE } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"

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

const words = (count: number) => Array.from({ length: count }, () => "word").join(" ")
const user = (text: string): Message => ({ role: "user", content: text })
const prefixOf = (...texts: ReadonlyArray<string>) => ({
  model: "small",
  tools: [],
  messages: [{ role: "system", content: SYSTEM } as const, ...texts.map(user)]
})

/** What a lane is found to have, whose last prompt a provider counted. */
const after = <A, E, R>(
  last: { readonly prefix: ReturnType<typeof prefixOf>; readonly reported: number } | undefined,
  work: Effect.Effect<A, E, R>
) => {
  const size = last && { model: "small", messages: last.prefix.messages, reported: last.reported }
  const config = configOf({
    small: { provider: "p", model: "m", endpoint: "http://127.0.0.1:9", context_window: 20_000, max_tokens: 1000 }
  })
  const calls = Layer.mock(ModelCalls, { lastPrompt: () => size, newestPrompt: () => undefined })
  return Effect.provide(work, Layer.mergeAll(AgentSettings.layer(settingsOf(1, config)), TokenCount.layer, calls))
}

describe("the size of a window", () => {
  it.effect("is what the provider counted last, with what came since, where a note at the end is gone, too", () =>
    Effect.gen(function* () {
      const said = [words(1000), words(2000)]
      const now = promptTokens(EDGE, prefixOf(...said, words(500)))
      assert.closeTo(yield* after(undefined, now), 3500, 10)
      // The provider counts thoughts that our texts lack: twice as much.
      assert.closeTo(yield* after({ prefix: prefixOf(...said), reported: 6020 }, now), 6000 + 500, 20)
      const noted = { prefix: prefixOf(...said, words(250)), reported: 6520 }
      assert.closeTo(yield* after(noted, now), 6000 + 500, 20)
      assert.closeTo(yield* after({ prefix: prefixOf("other", ...said), reported: 6022 }, now), 3500, 20)
      assert.closeTo(yield* after({ prefix: prefixOf(...said), reported: 60_000 }, now), 3500, 10)
    })
  )

  it.effect("is not clearly small where the provider counted the last prompt near the limit", () =>
    Effect.gen(function* () {
      const prefix = prefixOf("short")
      assert.isTrue(yield* after(undefined, isClearlySmall(EDGE, prefix, 0.9)))
      assert.isTrue(yield* after({ prefix, reported: 10_000 }, isClearlySmall(EDGE, prefix, 0.9)))
      assert.isFalse(yield* after({ prefix, reported: 14_500 }, isClearlySmall(EDGE, prefix, 0.9)))
      assert.isFalse(yield* after(undefined, isClearlySmall(EDGE, prefixOf(words(4000)), 0.9)))
    })
  )
})
