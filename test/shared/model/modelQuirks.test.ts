/** What is known of models before they are asked, and what is learned from a 400 (D47). */
import { assert, describe, it } from "@effect/vitest"
import { quirksOf } from "#src/shared/model/quirks.ts"
import { withoutRefused } from "#src/shared/model/requestParameters.ts"

const LIKES_TEMPERATURE = [
  "gpt-4o",
  "gpt-4.1-mini",
  "gpt-5-chat-latest",
  "openai/gpt-5.1-chat",
  "claude-opus-4-1",
  "claude-opus-4.6",
  "claude-opus-4-20250514",
  "claude-sonnet-4-5",
  "o200k",
  "llama-3.3-70b",
  "offline-model"
]
const REFUSES_TEMPERATURE = [
  "gpt-5",
  "gpt-5-mini",
  "gpt-5.1",
  "openai/gpt-5-nano",
  "o1",
  "o3-mini",
  "openai/o4-mini",
  "claude-opus-4-7",
  "anthropic/claude-opus-4.7",
  "claude-opus-4-10",
  "claude-opus-5"
]

const ENDPOINT = "http://127.0.0.1:11434/v1"

describe("quirksOf", () => {
  it.each(LIKES_TEMPERATURE)("lets %s have a temperature", (model) =>
    assert.isTrue(quirksOf({ endpoint: ENDPOINT, model }).temperature)
  )
  it.each(REFUSES_TEMPERATURE)("lets %s have none", (model) =>
    assert.isFalse(quirksOf({ endpoint: ENDPOINT, model }).temperature)
  )
  it.each([
    ["https://api.openai.com/v1", "gpt-4o", "max_completion_tokens"],
    ["https://API.OpenAI.com:443/v1", "gpt-4o", "max_completion_tokens"],
    ["https://mine.openai.azure.com/openai/v1", "mine", "max_completion_tokens"],
    ["https://openrouter.ai/api/v1", "openai/gpt-4o", "max_tokens"],
    ["https://openrouter.ai/api/v1", "openai/gpt-5", "max_completion_tokens"],
    ["https://api.openai.com.example.org/v1", "gpt-4o", "max_tokens"],
    [ENDPOINT, "llama-3.3-70b", "max_tokens"]
  ] as const)("at %s limits the answer of %s by %s", (endpoint, model, limit) =>
    assert.strictEqual(quirksOf({ endpoint, model }).limit, limit)
  )
})

describe("withoutRefused", () => {
  const SENT = ["model", "max_tokens", "temperature"]
  const said = (message: string, param?: string) => JSON.stringify({ error: { message, param } })

  it.each([
    [said("no", "temperature"), "temperature", undefined],
    [said("'temperature' is not supported"), "temperature", undefined],
    [said("temperature: Extra inputs are not permitted"), "temperature", undefined],
    [said("Use 'max_completion_tokens' instead.", "max_tokens"), "max_tokens", "max_completion_tokens"]
  ] as const)("reads of %s that %s is refused", (text, parameter, instead) => {
    const found = withoutRefused(text, SENT, new Map())
    assert.strictEqual(found?.parameter, parameter)
    assert.deepStrictEqual([...(found?.changes ?? [])], [[parameter, instead]])
  })

  it.each([
    said("no", "messages"),
    said("no", "model"),
    said("no", "top_p"),
    said("max_tokens and temperature do not go together"),
    said("the prompt is too long"),
    "",
    "null",
    '{"error":{"message":7,"param":{}}}'
  ])("changes nothing for %s", (text) => assert.isUndefined(withoutRefused(text, SENT, new Map())))

  it("keeps a limit that is refused under both names, since budgets count on it", () => {
    const renamed = withoutRefused(said("no", "max_tokens"), SENT, new Map())?.changes ?? new Map()
    const long = said("'max_tokens' or 'max_completion_tokens' is too large: 4000", "max_completion_tokens")
    assert.isUndefined(withoutRefused(long, ["model", "max_completion_tokens"], renamed))
    assert.isUndefined(withoutRefused(long, ["model", "max_completion_tokens"], new Map()))
  })
})
