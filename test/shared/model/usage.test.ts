/** Five spellings of usage, and what each costs. */
import { assert, describe, it } from "@effect/vitest"
import { anthropicUsage, limitTokens, openAiUsage, usageOf } from "#src/shared/model/usage.ts"

const PRICE = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }

describe("usage", () => {
  for (const [name, counted, expected] of [
    [
      "OpenAI",
      openAiUsage({
        prompt_tokens: 10_000,
        completion_tokens: 500,
        total_tokens: 10_500,
        prompt_tokens_details: { cached_tokens: 8000 },
        completion_tokens_details: { reasoning_tokens: 200 }
      }),
      { cache_read: 8000, reasoning: 200, cost_usd: (2000 * 3 + 8000 * 0.3 + 500 * 15) / 1e6 }
    ],
    [
      "Responses",
      openAiUsage({
        input_tokens: 10_000,
        output_tokens: 500,
        input_tokens_details: { cached_tokens: 8000 },
        output_tokens_details: { reasoning_tokens: 200 }
      }),
      { cache_read: 8000, reasoning: 200, cost_usd: (2000 * 3 + 8000 * 0.3 + 500 * 15) / 1e6 }
    ],
    [
      "Anthropic",
      anthropicUsage({
        input_tokens: 1000,
        output_tokens: 500,
        cache_read_input_tokens: 8000,
        cache_creation_input_tokens: 1000
      }),
      { cache_read: 8000, cache_write: 1000, cost_usd: (1000 * 3 + 8000 * 0.3 + 1000 * 3.75 + 500 * 15) / 1e6 }
    ],
    [
      "DeepSeek",
      openAiUsage({
        prompt_tokens: 10_000,
        completion_tokens: 500,
        prompt_cache_hit_tokens: 8000,
        prompt_cache_miss_tokens: 2000
      }),
      { cache_read: 8000, cost_usd: (2000 * 3 + 8000 * 0.3 + 500 * 15) / 1e6 }
    ],
    [
      "Moonshot",
      openAiUsage({ prompt_tokens: 10_000, completion_tokens: 500, cached_tokens: 8000 }),
      { cache_read: 8000, cost_usd: (2000 * 3 + 8000 * 0.3 + 500 * 15) / 1e6 }
    ],
    [
      "OpenRouter, whose own cost counts",
      openAiUsage({
        prompt_tokens: 10_000,
        completion_tokens: 500,
        cost: 0.0123,
        prompt_tokens_details: { cached_tokens: 8000, cache_write_tokens: 1000 }
      }),
      { cache_read: 8000, cache_write: 1000, cost_usd: 0.0123 }
    ],
    [
      "OpenRouter with a person's own key",
      openAiUsage({
        prompt_tokens: 10_000,
        completion_tokens: 500,
        cost: 0.001,
        is_byok: true,
        cost_details: { upstream_inference_cost: 0.02 }
      }),
      { cost_usd: 0.021 }
    ],
    [
      "a sum that reasoning is in and the answer's count is not",
      openAiUsage({ prompt_tokens: 10_000, completion_tokens: 300, total_tokens: 10_500 }),
      { reasoning: 200, cost_usd: (10_000 * 3 + 500 * 15) / 1e6 }
    ]
  ] as const)
    it(`of ${name} is read and priced`, () => {
      const { cost_usd, ...usage } = usageOf({ price: PRICE }, 40_000, 1000, counted)
      const { cost_usd: cost, ...parts } = expected
      assert.deepStrictEqual<unknown>(usage, { input_tokens: 10_000, output_tokens: 500, ...parts })
      assert.closeTo(cost_usd ?? 0, cost, 1e-12)
    })

  it("costs what the whole prompt does where config.json prices no cache", () => {
    const counted = openAiUsage({ prompt_tokens: 1000, completion_tokens: 0, cached_tokens: 900 })
    assert.strictEqual(usageOf({ price: { input: 3, output: 15 } }, 4000, 0, counted).cost_usd, 0.003)
  })

  it("is the provider's where it can be, though the request is full of escapes, and estimated where it cannot", () => {
    const counted = (prompt_tokens: unknown) => openAiUsage({ prompt_tokens, completion_tokens: 5 })
    const input = (tokens: unknown) => usageOf({}, 40_000, 10, counted(tokens)).input_tokens
    assert.deepStrictEqual(
      [5000, 2500, 2000, 0, -1, "5000", null].map(input),
      [5000, 2500, 10_000, 10_000, 10_000, 10_000, 10_000]
    )
  })

  it("is never less than its parts, whatever a provider says", () => {
    for (const value of [
      {
        prompt_tokens: 10,
        completion_tokens: 1,
        cached_tokens: 1e9,
        completion_tokens_details: { reasoning_tokens: 9 }
      },
      { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 8 } }
    ]) {
      const { cache_read, cache_write, input, output, reasoning } = openAiUsage(value)
      assert.isAtMost(cache_read + cache_write, input)
      assert.isAtMost(reasoning, output)
    }
    for (const cost of [-1, Number.NaN, 1e300, "1"]) assert.isUndefined(openAiUsage({ cost }).cost_usd)
  })

  it("counts a cache read as a tenth of a session's limit, in whole tokens", () => {
    assert.strictEqual(limitTokens({ input_tokens: 1000, output_tokens: 50 }), 1050)
    assert.strictEqual(limitTokens({ input_tokens: 1000, output_tokens: 50, cache_read: 901 }), 99 + 91 + 50)
    assert.strictEqual(limitTokens({ input_tokens: 10, output_tokens: 0, cache_read: 1000 }), 1)
  })
})
