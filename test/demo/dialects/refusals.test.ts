/** Each dialect takes one whole conversation, and refuses it for every rule of its table with that rule broken. */
import { assert, describe, it } from "@effect/vitest"
import { type DialectName, DIALECTS, refusalOf } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import type { Traits } from "#demo/dialects/Rule.ts"
import { signatureOf } from "#demo/dialects/signatures.ts"
import {
  type Broken,
  CHAT,
  type ChatBase,
  chatBase,
  chatTool,
  fn,
  imagePart,
  marked,
  MORE,
  PARAMETERS,
  PNG,
  THOUGHT,
  withCall,
  withMessage,
  without,
  withoutReasoning,
  withUser
} from "./chatRequests.ts"
import { CHAT_DIALECTS, MODEL_NAMES } from "../../support/modelNames.ts"

const TRAITS: Traits = {
  context_window: 128_000,
  answer_tokens_max: 128_000,
  refuses: [],
  extensions: [],
  count: (text) => text.length
}

const responsesBase = () => {
  const model = "gpt-5.6"
  const plain = { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: THOUGHT }] }
  return {
    model,
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "high" },
    instructions: "You are an agent.",
    max_output_tokens: 1000,
    tools: [{ type: "function", ...fn("fs-read") }],
    input: [
      { role: "user", content: [{ type: "input_text", text: "Read a." }] },
      { ...plain, encrypted_content: signatureOf(model, `rs_1\n${THOUGHT}`) },
      { type: "function_call", id: "fc_1_0", call_id: "call_1", name: "fs-read", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "call_1", output: "1\tone" }
    ] as ReadonlyArray<Keys>
  }
}
type ResponsesBase = ReturnType<typeof responsesBase>
const withItem = (base: ResponsesBase, index: number, change: Keys): Keys => ({
  ...base,
  input: base.input.map((item, at) => (at === index ? { ...item, ...change } : item))
})
const items = (base: ResponsesBase, ...indices: ReadonlyArray<number>): Keys => ({
  ...base,
  input: indices.map((index) => base.input[index])
})

const RESPONSES: Broken<ResponsesBase> = {
  "a request names its model": (base) => without(base, "model"),
  "a request has the parameters of this API": (base) => ({ ...base, reasoning_effort: "high" }),
  "a request has parameters that the model takes": (base) => ({ ...base, temperature: 0.7 }),
  "the answer's limit is an integer from 16 on": (base) => ({ ...base, max_output_tokens: 5 }),
  "what is to be included is known": (base) => ({ ...base, include: ["everything"] }),
  "a tool is a function with its keys at the top": (base) => ({ ...base, tools: [chatTool("fs-read")] }),
  "a tool's name has the letters and the length that the provider takes": (base) => ({
    ...base,
    tools: [{ type: "function", ...fn("fs.read") }]
  }),
  "tools are few and have different names": (base) => ({
    ...base,
    tools: [1, 2].map(() => ({ type: "function", ...fn("fs-read") }))
  }),
  "a tool's parameters are the schema of an object, and a strict one unless strict is false": (base) => ({
    ...base,
    tools: [{ type: "function", ...fn("fs-read", { ...PARAMETERS, required: [] }) }]
  }),
  "there is input": (base) => ({ ...base, input: [] }),
  "an item has a known type and that type's keys": (base) => withItem(base, 3, { tool_call_id: "call_1" }),
  "a message has a known role": (base) => withItem(base, 0, { role: "tool" }),
  "instructions come first, in 'instructions' or in the first message": (base) => ({
    ...base,
    input: [...base.input, { role: "system", content: "More." }]
  }),
  "a message has content of its role's kind": (base) =>
    withItem(base, 0, { content: [{ type: "output_text", text: "Read a." }] }),
  "a call has an id, a legal name and arguments that are a JSON object": (base) =>
    withItem(base, 2, { arguments: "{" }),
  "each call is answered once, and no result comes before its call": (base) => items(base, 0, 1, 2),
  "a result is a text, or parts as a message of the user has them": (base) =>
    withItem(base, 3, { output: [{ type: "output_text", text: "one" }] }),
  "images have a known format, and the model takes them": (base) =>
    withItem(base, 3, { output: [{ type: "input_image", image_url: `data:image/gif;base64,${PNG}` }] }),
  "reasoning brings its encrypted content, since nothing is stored": (base) =>
    withItem(base, 1, { encrypted_content: null }),
  "reasoning comes back as it was sent, to the model that it is of": (base) => ({ ...base, model: "gpt-5.5" }),
  "reasoning is followed by what it led to": (base) => items(base, 0, 1),
  "a call with its item's id comes with its reasoning": (base) => items(base, 0, 2, 3),
  "prompt and answer fit into the model's context": (base) => ({ ...base, max_output_tokens: 128_000 })
}

const anthropicBase = () => {
  const model = "claude-sonnet-4-5"
  const thinking = { type: "thinking", thinking: THOUGHT, signature: signatureOf(model, THOUGHT) }
  return {
    model,
    max_tokens: 4000,
    thinking: { type: "enabled", budget_tokens: 2000 },
    system: [marked("You are an agent.")],
    tools: [{ name: "fs-read", description: "Reads a file", input_schema: PARAMETERS }],
    messages: [
      { role: "user", content: "Read a." },
      {
        role: "assistant",
        content: [thinking, { type: "tool_use", id: "toolu_1", name: "fs-read", input: { path: "a" } }]
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "1\tone" }, marked("Go on.")] }
    ] as ReadonlyArray<{ readonly role: string; readonly content: string | ReadonlyArray<Keys> }>
  }
}
type AnthropicBase = ReturnType<typeof anthropicBase>
const withBlocks = (
  base: AnthropicBase,
  index: number,
  change: (blocks: ReadonlyArray<Keys>) => ReadonlyArray<Keys>
): Keys => ({
  ...base,
  messages: base.messages.map((message, at) =>
    at === index && typeof message.content !== "string" ? { ...message, content: change(message.content) } : message
  )
})
const withBlock = (base: AnthropicBase, message: number, block: number, change: Keys): Keys =>
  withBlocks(base, message, (blocks) => blocks.map((one, at) => (at === block ? { ...one, ...change } : one)))
const imageBlock = (media_type: string, data = PNG): Keys => ({
  type: "image",
  source: { type: "base64", media_type, data }
})
const anthropicTool = (base: AnthropicBase, change: Keys): Keys => ({
  ...base,
  tools: [{ ...base.tools[0], ...change }]
})

const ANTHROPIC: Broken<AnthropicBase> = {
  "a request names its model": (base) => without(base, "model"),
  "an answer has a limit": (base) => without(base, "max_tokens"),
  "an answer's limit is no more than the model writes": (base) => ({ ...base, max_tokens: 128_001 }),
  "a request has parameters that the provider knows": (base) => ({ ...base, reasoning_effort: "high" }),
  "a request has parameters that the model takes": (base) => ({ ...base, model: "claude-opus-4-7", temperature: 0.7 }),
  "the temperature is a number from 0 to 1": (base) => ({ ...base, temperature: 1.5 }),
  "a model that thinks has temperature 1": (base) => ({ ...base, temperature: 0.7 }),
  "thinking has a budget below the answer's limit": (base) => ({ ...base, max_tokens: 2000 }),
  "the newest models think adaptively": (base) => ({ ...base, model: "claude-opus-4-8" }),
  "an effort is one that the model knows": (base) => ({ ...base, output_config: { effort: "xhigh" } }),
  "no call is forced where the model thinks": (base) => ({ ...base, tool_choice: { type: "any" } }),
  "a tool has known keys": (base) => anthropicTool(base, { parameters: PARAMETERS }),
  "a tool's name has the letters and the length that the provider takes": (base) =>
    anthropicTool(base, { name: "fs.read" }),
  "a tool's parameters are the schema of an object": (base) =>
    anthropicTool(base, { input_schema: { not: { type: "null" } } }),
  "tools have different names": (base) => ({ ...base, tools: [...base.tools, ...base.tools] }),
  "a request with calls or results has tools": (base) => without(base, "tools"),
  "there are messages": (base) => ({ ...base, messages: [] }),
  "a message has the role user or assistant": (base) => ({
    ...base,
    messages: [{ role: "system", content: "You are an agent." }, ...base.messages]
  }),
  "the system prompt is text": (base) => ({ ...base, system: { role: "system" } }),
  "a message has role and content only": (base) => ({
    ...base,
    messages: base.messages.map((message) => ({ ...message, name: "a" }))
  }),
  "the first message is the user's, and roles alternate": (base) => ({
    ...base,
    messages: [...base.messages, { role: "user", content: "And?" }]
  }),
  "the conversation ends with the user's message": (base) => ({
    ...base,
    messages: [...base.messages, { role: "assistant", content: "It says" }]
  }),
  "a message has content": (base) => withBlocks(base, 2, () => []),
  "a block has a known type and that type's keys": (base) => withBlock(base, 1, 1, { arguments: "{}" }),
  "a text block has text": (base) => withBlock(base, 2, 1, { text: "" }),
  "a call has a legal id and name": (base) => withBlock(base, 1, 1, { id: "call 1" }),
  "a call's input is an object": (base) => withBlock(base, 1, 1, { input: '{"path":"a"}' }),
  "calls are the assistant's and have different ids": (base) =>
    withBlocks(base, 1, (blocks) => [...blocks, ...blocks.slice(1)]),
  "each call is answered once, right behind it": (base) => withBlocks(base, 2, (blocks) => blocks.toReversed()),
  "a result is text and images": (base) => withBlock(base, 2, 0, { content: [{ type: "tool_use" }] }),
  "images are the user's, of a known format and size, and for a model that takes them": (base) =>
    withBlock(base, 2, 0, { content: [imageBlock("image/jpeg")] }),
  "thinking comes back as it was sent, to the model that it is of": (base) =>
    withBlock(base, 1, 0, { thinking: "Else." }),
  "thinking is the beginning of the assistant's message": (base) =>
    withBlocks(base, 1, (blocks) => blocks.toReversed()),
  "calls of the present turn come back with their thinking where thinking has a budget": (base) =>
    withBlocks(base, 1, (blocks) => blocks.slice(1)),
  "a request has at most four breakpoints of the cache": (base) => ({
    ...base,
    system: Array.from({ length: 4 }, () => marked("You are an agent."))
  }),
  "prompt and answer fit into the model's context": (base) => ({ ...base, max_tokens: 128_000 })
}

const withoutMark = (part: Keys): Keys => without(part, "cache_control")

const HEADERS = { authorization: "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01" }
const refusal = (name: DialectName, body: unknown, traits: Partial<Traits> = {}, bytes = 1, headers: Keys = HEADERS) =>
  refusalOf(DIALECTS[name], { headers: headers as typeof HEADERS, bytes, body }, { ...TRAITS, ...traits })

const both = <Base>(name: DialectName, base: Base & Keys, broken: Broken<Base>) =>
  describe(name, () => {
    it("takes a conversation in the middle of a turn", () => {
      assert.isUndefined(refusal(name, base))
    })
    it.each(DIALECTS[name].rules.map((rule) => rule.name))("refuses it where it does not hold that %s", (rule) => {
      const found = refusal(name, broken[rule]?.(base))
      assert.strictEqual(found?.rule, rule)
      assert.isAbove(found?.message.length ?? 0, 0)
      assert.include(JSON.stringify(found?.body), JSON.stringify(found?.message).slice(1, -1))
    })
    it("asks for its key and for a body that is not too large", () => {
      const unknown = refusal(name, base, { key: "other" })
      assert.deepStrictEqual([unknown?.status, refusal(name, base, { key: "k" })], [401, undefined])
      assert.strictEqual(refusal(name, base, { key: "k" }, 1, { "anthropic-version": "1" })?.status, 401)
      assert.strictEqual(refusal(name, base, {}, 65 * 1024 * 1024)?.status, 413)
      assert.strictEqual(refusal(name, "{")?.status, 400)
    })
  })

describe("refusals", () => {
  for (const name of CHAT_DIALECTS) both(name, chatBase(name, MODEL_NAMES[name]), { ...CHAT, ...MORE[name] })
  both("responses", responsesBase(), RESPONSES)
  both("anthropic", anthropicBase(), ANTHROPIC)

  it("spare models that take the parameter, thinking that is off, and calls of another model", () => {
    const kimi = chatBase("kimi", "kimi-k2.6")
    assert.isUndefined(refusal("kimi", { ...withoutReasoning(kimi), thinking: { type: "disabled" } }))
    assert.isUndefined(refusal("kimi", { ...chatBase("kimi", "kimi-latest"), temperature: 0.7 }))
    const { max_tokens, ...gpt } = chatBase("openai", "gpt-5.6")
    const limited = { ...gpt, max_completion_tokens: max_tokens }
    assert.isUndefined(refusal("openai", { ...limited, reasoning_effort: "none", temperature: 1 }))
    const gemini = chatBase("gemini", "gemini-3-pro-preview")
    const skip = { google: { thought_signature: "skip_thought_signature_validator" } }
    assert.isUndefined(refusal("gemini", withCall(gemini, { extra_content: skip })))
    assert.isUndefined(refusal("gemini", { ...withCall(gemini, { extra_content: {} }), model: "gemini-2.5-pro" }))
    assert.isUndefined(refusal("gemini", { ...withUser(withCall(gemini, { extra_content: {} }) as ChatBase) }))
    const claude = anthropicBase()
    const quick = withBlocks(claude, 1, (blocks) => blocks.slice(1))
    assert.isUndefined(refusal("anthropic", { ...quick, thinking: { type: "disabled" } }))
    // Adaptive thinking does not ask for it at the beginning of each message.
    assert.isUndefined(refusal("anthropic", { ...quick, thinking: { type: "adaptive" }, model: "claude-opus-4-7" }))
    const routed = chatBase("openrouter", "anthropic/claude-sonnet-4.6")
    const bare = withMessage(routed, 2, { reasoning_details: undefined })
    assert.isUndefined(refusal("openrouter", bare))
    assert.strictEqual(refusal("openrouter", { ...bare, reasoning: { max_tokens: 2048 } })?.status, 400)
    assert.strictEqual(refusal("openrouter", { ...bare, model: "anthropic/claude-sonnet-4.5" })?.status, 400)
    const responses = responsesBase()
    assert.isUndefined(refusal("responses", withItem(items(responses, 0, 2, 3) as ResponsesBase, 1, { id: undefined })))
    const loose = { type: "function", ...fn("fs-read", { ...PARAMETERS, required: [] }), strict: false }
    assert.isUndefined(refusal("responses", { ...responses, tools: [loose] }))
  })

  it("take images where a model takes them, and refuse each that it does not take", () => {
    const chat = (name: DialectName, model: string, part: Keys) =>
      refusal(name, withMessage(chatBase(name, model), 1, { content: [marked("Look."), part].map(withoutMark) }))
    const png = imagePart("image/png")
    for (const [name, model] of [
      ["openai", "gpt-4.1"],
      ["openrouter", "anthropic/claude-sonnet-4.5"],
      ["kimi", "kimi-k2.6"],
      ["gemini", "gemini-3-pro-preview"]
    ] as const)
      assert.isUndefined(chat(name, model, png), name)
    assert.include(chat("openai", "gpt-3.5", png)?.message, "image_url is only supported by certain models")
    assert.strictEqual(chat("openrouter", "z-ai/glm-5.2", png)?.status, 404)
    assert.include(chat("deepseek", "deepseek-v4", png)?.message, "unknown variant `image_url`")
    assert.strictEqual(chat("qwen-template", "qwen3-coder", png)?.status, 500)
    assert.include(chat("openai", "gpt-4.1", imagePart("image/bmp"))?.message, "unsupported image")
    assert.include(chat("openai", "gpt-4.1", imagePart("image/png", "bm90IGEgcG5n"))?.message, "unsupported image")
    const claude = (block: Keys) =>
      refusal("anthropic", withBlock(anthropicBase(), 2, 0, { content: [block] }))?.message
    assert.isUndefined(claude(imageBlock("image/png")))
    assert.include(claude(imageBlock("image/bmp")), "media_type: Input should be 'image/png'")
    assert.include(claude(imageBlock("image/gif")), "does not match the provided media type image/gif")
    assert.include(claude(imageBlock("image/png", PNG + "A".repeat(5_300_000))), "image exceeds 5 MB maximum")
  })

  it("count an image as one, however long its data is", () => {
    const base = chatBase("openai", "gpt-4.1")
    const large = imagePart("image/png", PNG.replace(/=+$/u, "") + "A".repeat(400_000))
    const looks = withMessage(base, 1, { content: Array.from({ length: 5 }, () => large) })
    assert.isUndefined(refusal("openai", looks))
    assert.strictEqual(
      refusal("openai", looks, { context_window: 8000 })?.rule,
      "prompt and answer fit into the model's context"
    )
  })

  it("are worded as the real provider words them", () => {
    const kimi = refusal("kimi", withoutReasoning(chatBase("kimi", "kimi-k2.6")))
    assert.deepStrictEqual(kimi?.body, {
      error: {
        message: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        type: "invalid_request_error",
        param: null,
        code: null
      }
    })
    const qwen = refusal("qwen-template", withMessage(chatBase("qwen-template", "qwen3.8"), 1, { role: "system" }))
    assert.strictEqual(qwen?.status, 500)
    assert.include(qwen?.message, "System message must be at the beginning.")
    const mistral = refusal("mistral", withCall(chatBase("mistral", "m"), { id: "call_0" }))
    assert.deepStrictEqual(mistral?.body, {
      object: "error",
      message: "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9.",
      type: "invalid_function_call",
      param: null,
      code: "3280",
      raw_status_code: 400
    })
    const anthropic = refusal("anthropic", { ...anthropicBase(), max_tokens: undefined })
    assert.include(
      JSON.stringify(anthropic?.body),
      '"type":"invalid_request_error","message":"max_tokens: Field required"'
    )
    const gemini = refusal("gemini", withCall(chatBase("gemini", "gemini-3-pro-preview"), { extra_content: {} }))
    assert.include(
      JSON.stringify(gemini?.body),
      '[{"error":{"code":400,"message":"Function call is missing a thought_signature'
    )
    assert.strictEqual(
      refusal("anthropic", anthropicBase(), {}, 1, {})?.message,
      "anthropic-version: header is required"
    )
  })
})
