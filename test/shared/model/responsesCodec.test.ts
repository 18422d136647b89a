/** OpenAI's Responses without stored state. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { bodyOf, modelOf, sse, stepOf, streamOf, TOOL, wholeOf } from "../../support/askedCodec.ts"

const ENTRY = { api: "responses", model: "gpt-5.6" }
const START: ReadonlyArray<Message> = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "look" }
]
const REASONING = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" }
const use = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "choir-exec",
  arguments: '{"command":"ls"}',
  ...more
})
const say = (text: string, more: object = {}) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
  ...more
})
const reply = (output: ReadonlyArray<object>, more: object = {}) => ({
  object: "response",
  status: "completed",
  output,
  usage: { input_tokens: 20, output_tokens: 9 },
  ...more
})
const itemsOf = (messages: ReadonlyArray<Message>, entry: object = ENTRY) =>
  bodyOf(modelOf(entry as Readonly<Record<string, unknown>>), messages, [TOOL])["input"] as ReadonlyArray<
    Readonly<Record<string, unknown>>
  >
const answered = (...output: ReadonlyArray<object>) => Result.getOrThrow(wholeOf("responses", reply(output)))

describe("the codec of responses", () => {
  it("stores nothing, asks for sealed reasoning, and takes loose schemas", () => {
    const openai = { ...ENTRY, endpoint: "https://api.openai.com/v1", reasoning_effort: "high", max_tokens: 5 }
    assert.deepStrictEqual<unknown>(bodyOf(modelOf(openai), START, [TOOL]), {
      model: "gpt-5.6",
      max_output_tokens: 16,
      reasoning: { effort: "high" },
      include: ["reasoning.encrypted_content"],
      store: false,
      stream: true,
      prompt_cache_key: "session/edge",
      instructions: "You are an agent.",
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "look" }] }],
      tools: [{ type: "function", ...TOOL, strict: false }]
    })
    const older = bodyOf(modelOf({ ...ENTRY, model: "gpt-4.1" }), START)
    assert.deepStrictEqual([older["include"], older["temperature"]], [undefined, 0.7])
  })

  it("sends reasoning back in its place and order, with what it led to", () => {
    const other = { ...REASONING, id: "rs_2" }
    const answer = answered(
      REASONING,
      say("I look.", { phase: "commentary" }),
      use("a", { id: "fc_1" }),
      other,
      use("b")
    )
    const items = itemsOf([...START, ...stepOf(modelOf(ENTRY), answer)])
    assert.deepStrictEqual<unknown>(items.slice(1), [
      REASONING,
      say("I look.", { phase: "commentary" }),
      use("c-1-0"),
      other,
      use("c-1-1"),
      { type: "function_call_output", call_id: "c-1-0", output: "result of c-1-0" },
      { type: "function_call_output", call_id: "c-1-1", output: "result of c-1-1" }
    ])
    const foreign = itemsOf([...START, ...stepOf(modelOf(ENTRY), answer)], { ...ENTRY, model: "gpt-5.7" })
    assert.deepStrictEqual<unknown>(foreign.slice(1, 4), [say("I look."), use("c-1-0"), use("c-1-1")])
  })

  it("keeps no reasoning that is not sealed, or that nothing follows", () => {
    const { encrypted_content: _, ...open } = REASONING
    assert.isUndefined(answered(open, use("a")).reasoning)
    const items = itemsOf([...START, ...stepOf(modelOf(ENTRY), answered(use("a"), REASONING))])
    assert.notInclude(JSON.stringify(items), "sealed")
  })

  for (const [name, body, expected] of [
    [
      "cut",
      reply([say("ha")], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }),
      "length"
    ],
    ["whole", reply([say("ha")]), "stop"],
    ["a call", reply([use("a")]), "tool_calls"]
  ] as const)
    it(`reads an answer that is ${name}`, () =>
      assert.strictEqual(Result.getOrThrow(wholeOf("responses", body)).finish_reason, expected))

  for (const [name, body, kind] of [
    ["a refusal", reply([say("", { content: [{ type: "refusal", refusal: "no" }] })]), "content_filter"],
    [
      "a filter",
      reply([say("ha")], { status: "incomplete", incomplete_details: { reason: "content_filter" } }),
      "content_filter"
    ],
    ["a failure", reply([], { status: "failed", error: { code: "server_error", message: "x" } }), "http"],
    ["nonsense", reply([{ type: "function_call", name: 7, arguments: "" }]), "malformed"],
    ["no output", { output: 1 }, "malformed"]
  ] as const)
    it(`takes ${name} for a failed call`, () => {
      const answer = wholeOf("responses", body)
      assert.strictEqual(Result.isFailure(answer) ? answer.failure.kind : undefined, kind)
    })

  const OUTPUT = [REASONING, say("I look."), use("a")]
  const STREAM = [
    { type: "response.created", response: { status: "in_progress" } },
    { type: "response.output_item.added", output_index: 0, item: { type: "reasoning" } },
    { type: "response.output_item.done", output_index: 0, item: REASONING },
    { type: "response.output_text.delta", delta: "I " },
    { type: "response.output_text.delta", delta: "look." },
    { type: "response.output_item.done", output_index: 1, item: OUTPUT[1] },
    { type: "response.output_item.added", output_index: 2, item: { type: "function_call", name: "choir-exec" } },
    { type: "response.function_call_arguments.delta", delta: '{"command":"ls"}' },
    { type: "response.output_item.done", output_index: 2, item: OUTPUT[2] }
  ]

  for (const [name, output] of [
    ["at its end", OUTPUT],
    ["on its way only", []]
  ] as const)
    it(`makes of a stream that brings its items ${name} what the whole answer says`, () => {
      const { answer, heard } = streamOf(
        "responses",
        sse([...STREAM, { type: "response.completed", response: reply(output) }])
      )
      assert.deepStrictEqual(answer, wholeOf("responses", reply(OUTPUT)))
      assert.deepStrictEqual(heard, [
        { type: "thinking" },
        { type: "text", text: "I " },
        { type: "text", text: "look." },
        { type: "call", name: "choir-exec" }
      ])
    })

  it("makes the same of a stream that does not number its items, and of each call one", () => {
    const unnumbered = STREAM.map((event) => ({ ...event, output_index: undefined }))
    const { answer } = streamOf("responses", sse([...unnumbered, { type: "response.completed", response: reply([]) }]))
    assert.deepStrictEqual(answer, wholeOf("responses", reply(OUTPUT)))
  })

  for (const [name, events, kind, status] of [
    ["ends before its answer does", STREAM, "unreachable", undefined],
    [
      "brings an error",
      [...STREAM, { type: "error", code: "rate_limit_exceeded", message: "slow" }],
      "rate_limited",
      429
    ],
    [
      "fails",
      [
        ...STREAM,
        {
          type: "response.failed",
          response: reply([], { status: "failed", error: { code: "server_error", message: "x" } })
        }
      ],
      "http",
      502
    ]
  ] as const)
    it(`fails with a stream that ${name}`, () => {
      const { answer } = streamOf("responses", sse(events))
      assert.isTrue(Result.isFailure(answer))
      if (Result.isFailure(answer)) assert.deepStrictEqual([answer.failure.kind, answer.failure.status], [kind, status])
    })
})
