/** Anthropic's Messages. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CODECS } from "#src/shared/model/codecs.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { bodyOf, modelOf, sse, stepOf, streamOf, TOOL, wholeOf } from "../../support/askedCodec.ts"

const ENTRY = { api: "messages", model: "claude-sonnet-4-5", max_tokens: 8000 }
const START: ReadonlyArray<Message> = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "look" }
]
const THINKING = { type: "thinking", thinking: "hm", signature: "s" }
const use = (id: string, input: object = { command: "ls" }) => ({ type: "tool_use", id, name: "choir-exec", input })
const reply = (content: ReadonlyArray<object>, stop_reason = "tool_use", more: object = {}) => ({
  type: "message",
  role: "assistant",
  content,
  stop_reason,
  usage: { input_tokens: 20, output_tokens: 9 },
  ...more
})

const EPHEMERAL = { type: "ephemeral" }

interface Turn {
  readonly role: string
  readonly content: ReadonlyArray<Readonly<Record<string, unknown>>>
}
const turnsOf = (messages: ReadonlyArray<Message>, entry: object = ENTRY) =>
  bodyOf(modelOf({ ...ENTRY, cache: "off", ...entry }), messages, [TOOL])["messages"] as ReadonlyArray<Turn>
const answered = (...content: ReadonlyArray<object>) => Result.getOrThrow(wholeOf("messages", reply(content)))

describe("the codec of messages", () => {
  it("writes system and tools apart, the limit always, and the key in a header of its own", () => {
    const model = modelOf({ ...ENTRY, temperature: 1.5 })
    assert.deepStrictEqual<unknown>(bodyOf(model, START, [TOOL]), {
      model: "claude-sonnet-4-5",
      max_tokens: 8000,
      temperature: 1,
      stream: true,
      tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters }],
      system: [{ type: "text", text: "You are an agent.", cache_control: EPHEMERAL }],
      messages: [{ role: "user", content: [{ type: "text", text: "look", cache_control: EPHEMERAL }] }]
    })
    assert.deepStrictEqual(CODECS.messages.headers(model, "k"), { "anthropic-version": "2023-06-01", "x-api-key": "k" })
    assert.strictEqual(
      CODECS.messages.headers(modelOf({ ...ENTRY, endpoint: "https://openrouter.ai/api/v1" }), "k")["authorization"],
      "Bearer k"
    )
  })

  it("sends thinking back in its place and order, with its signature", () => {
    const redacted = { type: "redacted_thinking", data: "x" }
    const step = stepOf(
      modelOf(ENTRY),
      answered(THINKING, redacted, { type: "text", text: "I look." }, use("a"), THINKING, use("b"))
    )
    const [, assistant, results] = turnsOf([...START, ...step])
    assert.deepStrictEqual<unknown>(assistant?.content, [
      THINKING,
      redacted,
      { type: "text", text: "I look." },
      use("c-1-0"),
      THINKING,
      use("c-1-1")
    ])
    assert.deepStrictEqual<unknown>(
      results?.content.map(({ tool_use_id, type }) => [type, tool_use_id]),
      [
        ["tool_result", "c-1-0"],
        ["tool_result", "c-1-1"]
      ]
    )
    assert.notInclude(JSON.stringify(turnsOf([...START, ...step], { model: "claude-opus-4-5" })), "hm")
  })

  it("lets roles alternate, ends with the user, and sends no empty text", () => {
    const turns = turnsOf([
      { role: "assistant", content: "hello" },
      { role: "user", content: " " },
      { role: "assistant", content: "are you there?" },
      { role: "user", content: "yes" },
      ...stepOf(modelOf(), answered(use("a"))),
      { role: "user", content: "<choir-note>also</choir-note>" },
      { role: "assistant", content: "" },
      { role: "assistant", content: "done" }
    ])
    assert.deepStrictEqual(
      turns.map(({ content, role }) => [role, ...content.map(({ type }) => type)]),
      [
        ["user", "text"],
        ["assistant", "text", "text"],
        ["user", "text"],
        ["assistant", "tool_use"],
        ["user", "tool_result", "text"],
        ["assistant", "text"],
        ["user", "text"]
      ]
    )
  })

  it("marks the end of the system text, of this request and of the one before", () => {
    const messages = [
      ...START,
      ...stepOf(modelOf(), answered(use("a"))),
      ...stepOf(modelOf(), answered(use("b"), use("c")), ["c-2-0", "c-2-1"])
    ]
    const turns = turnsOf(messages, { cache: "auto" })
    const marked = turns.flatMap(({ content }, index) =>
      content.flatMap((block, of) => ("cache_control" in block ? [[index, of]] : []))
    )
    assert.deepStrictEqual(marked, [
      [2, 0],
      [4, 1]
    ])
    const before = turnsOf(messages.slice(0, -3), { cache: "auto" })
    assert.isTrue("cache_control" in (before.at(-1)?.content.at(-1) ?? {}), "the end of the request before")
  })

  it("says an effort as the model takes it, and a temperature only where it does not think", () => {
    const asked = (entry: object) => {
      const { max_tokens, output_config, temperature, thinking } = bodyOf(modelOf({ ...ENTRY, ...entry }), START)
      return { max_tokens, output_config, temperature, thinking }
    }
    const common = { max_tokens: 8000, temperature: undefined, output_config: undefined }
    assert.deepStrictEqual<unknown>(asked({ reasoning_effort: "low" }), {
      ...common,
      thinking: { type: "enabled", budget_tokens: 2048 }
    })
    assert.deepStrictEqual<unknown>(asked({ reasoning_effort: "high" }), {
      ...common,
      thinking: { type: "enabled", budget_tokens: 6976 }
    })
    assert.deepStrictEqual<unknown>(asked({ reasoning_effort: "high", model: "claude-opus-4-7" }), {
      ...common,
      output_config: { effort: "high" },
      thinking: { type: "adaptive" }
    })
    assert.deepStrictEqual<unknown>(asked({ reasoning_effort: "high", max_tokens: 1500 }), {
      ...common,
      max_tokens: 1500,
      temperature: 0.7,
      thinking: undefined
    })
  })

  it("lets a model that thinks by a budget not think in a turn that another one began", () => {
    const entry = { reasoning_effort: "low" }
    const foreign = stepOf(modelOf({ ...ENTRY, model: "other" }), answered(THINKING, use("a")))
    const own = stepOf(modelOf(ENTRY), answered(THINKING, use("a")))
    const thinking = (messages: ReadonlyArray<Message>, more: object = {}) =>
      bodyOf(modelOf({ ...ENTRY, ...entry, ...more }), messages, [TOOL])["thinking"] !== undefined
    assert.isTrue(thinking([...START, ...own]))
    assert.isFalse(thinking([...START, ...foreign]))
    assert.isTrue(
      thinking([...START, ...foreign, { role: "assistant", content: "so" }, { role: "user", content: "go" }])
    )
    assert.isTrue(thinking([...START, ...foreign], { model: "claude-opus-4-7" }), "one that decides by itself")
  })

  it("reads refusals, cut answers and empty ones", () => {
    const refused = wholeOf("messages", reply([], "refusal", { stop_details: { explanation: "not this" } }))
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.message : "", "the model refused: not this")
    const { content, finish_reason } = Result.getOrThrow(
      wholeOf("messages", reply([{ type: "text", text: "ha" }], "max_tokens"))
    )
    assert.deepStrictEqual([content, finish_reason], ["ha", "length"])
    assert.strictEqual(Result.getOrThrow(wholeOf("messages", reply([], "end_turn"))).content, "")
  })

  const START_EVENT = {
    type: "message_start",
    message: {
      role: "assistant",
      content: [],
      usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 1 }
    }
  }
  const block = (index: number, content_block: object, ...deltas: ReadonlyArray<object>) => [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index }
  ]
  const STREAM = [
    START_EVENT,
    { type: "ping" },
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "h" },
      { type: "thinking_delta", thinking: "m" },
      { type: "signature_delta", signature: "s" }
    ),
    ...block(1, { type: "text", text: "" }, { type: "text_delta", text: "I look." }),
    ...block(
      2,
      { type: "tool_use", id: "a", name: "choir-exec", input: {} },
      { type: "input_json_delta", partial_json: '{"command"' },
      { type: "input_json_delta", partial_json: ':"ls"}' }
    ),
    ...block(3, { type: "tool_use", id: "b", name: "choir-exec", input: {} }),
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: "a_later_event", of: 1 },
    { type: "message_stop" }
  ]

  it("makes of a stream what the whole answer says", () => {
    const whole = reply([THINKING, { type: "text", text: "I look." }, use("a"), use("b", {})], "tool_use", {
      usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 9 }
    })
    const { answer, heard } = streamOf("messages", sse(STREAM))
    assert.deepStrictEqual(answer, wholeOf("messages", whole))
    assert.deepStrictEqual(heard, [
      { type: "thinking" },
      { type: "thinking" },
      { type: "thinking" },
      { type: "text", text: "I look." },
      { type: "call", name: "choir-exec" },
      { type: "call", name: "choir-exec" }
    ])
  })

  it("takes cut arguments for what they are", () => {
    const { answer } = streamOf(
      "messages",
      sse([
        START_EVENT,
        ...block(
          0,
          { type: "tool_use", id: "a", name: "choir-exec", input: {} },
          { type: "input_json_delta", partial_json: '{"comm' }
        ),
        { type: "message_delta", delta: { stop_reason: "max_tokens" }, usage: { output_tokens: 9 } },
        { type: "message_stop" }
      ])
    )
    const { finish_reason, tool_calls } = Result.getOrThrow(answer)
    assert.deepStrictEqual([finish_reason, tool_calls], ["length", [{ name: "choir-exec", input: '{"comm' }]])
  })

  for (const [name, events, kind, status] of [
    ["ends before its answer does", STREAM.slice(0, -3), "unreachable", undefined],
    [
      "brings an error",
      [START_EVENT, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
      "http",
      529
    ],
    ["holds nonsense", [{ type: "content_block_start", index: -1, content_block: {} }], "malformed", undefined]
  ] as const)
    it(`fails with a stream that ${name}`, () => {
      const { answer } = streamOf("messages", sse(events))
      assert.isTrue(Result.isFailure(answer))
      if (Result.isFailure(answer)) assert.deepStrictEqual([answer.failure.kind, answer.failure.status], [kind, status])
    })

  it("says an effort in the words that the model knows", () => {
    const effort = (model: string, reasoning_effort: string) =>
      bodyOf(modelOf({ ...ENTRY, model, reasoning_effort }), START)["output_config"]
    assert.deepStrictEqual<unknown>(effort("claude-opus-4-8", "xhigh"), { effort: "xhigh" })
    assert.deepStrictEqual<unknown>(effort("claude-sonnet-5", "minimal"), { effort: "low" })
    assert.deepStrictEqual<unknown>(effort("claude-opus-4-6", "xhigh"), { effort: "high" })
    assert.deepStrictEqual<unknown>(effort("claude-opus-4-6", "max"), { effort: "max" })
  })
})
