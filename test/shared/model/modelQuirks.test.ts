/** What is known of models before they are asked, and what is learned from a 400 (D47). */
import { assert, describe, it } from "@effect/vitest"
import { answerTokensOf, quirksOf, quirkWarnings } from "#src/shared/model/quirks.ts"
import { withoutRefused } from "#src/shared/model/requestParameters.ts"
import { modelOf } from "../../support/askedCodec.ts"

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
  "claude-opus-5",
  "claude-sonnet-5",
  "anthropic/claude-fable-5",
  "claude-mythos-preview"
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
    ["deepseek-chat", 8000],
    ["deepseek-reasoner", 16_000],
    ["deepseek/deepseek-v4-pro", 16_000],
    ["mistral-medium-latest", 16_000],
    ["codestral-latest", 4096],
    ["mistralai/codestral-2508", 4096],
    ["qwen3.5:27b", 16_000],
    ["qwen3:8b", 8000],
    ["qwq-plus", 8000],
    ["o1-preview", 16_000],
    ["gpt-5-chat-latest", 8000],
    ["gemma3:12b", 8000],
    ["claude-sonnet-5", 16_000],
    ["claude-3-5-haiku-latest", 8000],
    ["claude-3-haiku-20240307", 4096],
    ["gpt-4-turbo", 4096],
    ["gpt-4o", 8000],
    ["llama3.1", 4096],
    ["meta-llama/llama-3.3-70b-instruct", 4096],
    ["my-own-model", 8000]
  ] as const)("knows that %s may answer with %s tokens", (model, tokens) =>
    assert.strictEqual(quirksOf({ endpoint: ENDPOINT, model }).answer_tokens, tokens)
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

describe("answerTokensOf", () => {
  it.each([
    ["what config.json says", { model: "gpt-5", max_tokens: 77 }, 77],
    ["what the family writes", { model: "gpt-5" }, 16_000],
    ["what most models write, of one that nobody knows", { model: "m" }, 8000],
    ["a quarter of a small context", { model: "gpt-oss:20b", context_window: 24_000 }, 6000],
    ["4,096 where a quarter is less", { model: "m", context_window: 8192 }, 4096]
  ] as const)("is %s", (_, entry, tokens) => assert.strictEqual(answerTokensOf(modelOf(entry)), tokens))
})

describe("quirkWarnings", () => {
  const OPENAI = "https://api.openai.com/v1"
  const ANTHROPIC = "https://api.anthropic.com/v1"
  const OLLAMA = "http://127.0.0.1:11434/v1"
  const claude = { api: "messages", endpoint: ANTHROPIC, model: "claude-sonnet-4-5" }
  const keys = (entry: Readonly<Record<string, unknown>>) => quirkWarnings(modelOf(entry)).map(({ key }) => key)

  it.each([
    ["temperature that is left out", { model: "gpt-5.1", temperature: 0.2 }, ["temperature"]],
    ["chat where reasoning beside tools is refused", { endpoint: OPENAI, model: "gpt-5.6" }, ["api"]],
    ["an API that is not there", { endpoint: OPENAI, model: "gpt-5.6", api: "messages" }, ["api"]],
    ["no room to think", { ...claude, reasoning_effort: "high", max_tokens: 2000 }, ["max_tokens"]],
    ["no room for a prompt", { model: "m", max_tokens: 9000, context_window: 8000 }, ["context_window"]],
    ["a context that Ollama does not have", { model: "qwen3.5:27b", endpoint: OLLAMA }, ["context_window"]],
    ["images of a model without vision", { model: "deepseek-chat", images: true }, ["images"]]
  ] as const)("tells of %s", (_, entry, expected) => assert.deepStrictEqual<unknown>(keys(entry), expected))

  it.each([
    ["the default temperature", { model: "gpt-5.1" }],
    ["a temperature of null", { model: "claude-opus-4-7", temperature: null }],
    ["a model that thinks by a budget", { ...claude, reasoning_effort: "high", max_tokens: 4096 }],
    ["a context that was set for Ollama", { model: "qwen3.5:27b", endpoint: OLLAMA, context_window: 64_000 }],
    ["images of a model that nobody knows", { model: "mine", images: true }]
  ] as const)("says nothing of %s", (_, entry) => assert.deepStrictEqual(keys(entry), []))
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
