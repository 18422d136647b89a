/** Chat completions with what routers and providers added to them. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { bodyOf, modelOf, sse, stepOf, streamOf, TOOL, wholeOf } from "../../support/askedCodec.ts"

const START: ReadonlyArray<Message> = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "look" }
]

const reply = (message: object, finish_reason = "tool_calls", more: object = {}) => ({
  choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason }],
  ...more
})

const call = (id: string, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "choir-exec", arguments: '{"command":"ls"}' },
  ...more
})

const messagesOf = (body: Readonly<Record<string, unknown>>) =>
  body["messages"] as ReadonlyArray<Readonly<Record<string, unknown>>>

/** The assistant's message in the request after an answer. */
const replayed = (entry: Readonly<Record<string, unknown>>, answer: object, reader = entry) => {
  const step = stepOf(modelOf(entry), Result.getOrThrow(wholeOf("chat", answer)))
  return messagesOf(bodyOf(modelOf(reader), [...START, ...step], [TOOL]))
}

describe("the codec of chat completions", () => {
  const SPELLINGS = [
    ["reasoning_content", { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }],
    ["reasoning_details", { reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s", index: 0 }] }]
  ] as const

  for (const [name, spelled] of SPELLINGS)
    it(`sends ${name} back as it came with the calls that it led to`, () => {
      const [, , assistant] = replayed({}, reply({ ...spelled, tool_calls: [call("a")] }))
      assert.deepStrictEqual(assistant, {
        role: "assistant",
        content: null,
        ...spelled,
        tool_calls: [call("c-1-0")]
      })
    })

  it("sends reasoning to no other model, to no other endpoint and through no other API", () => {
    const answer = reply({ reasoning_content: "hm", tool_calls: [call("a")] })
    for (const other of [{ model: "n" }, { endpoint: "http://127.0.0.2:1/v1" }])
      assert.notInclude(JSON.stringify(replayed({}, answer, other)), "hm")
    const step = stepOf(modelOf(), Result.getOrThrow(wholeOf("chat", answer)))
    for (const api of ["responses", "messages"])
      assert.notInclude(JSON.stringify(bodyOf(modelOf({ api }), [...START, ...step], [TOOL])), "hm")
  })

  it("keeps no reasoning of a final answer, nor of calls that are replayed otherwise", () => {
    const broken = { id: "a", type: "function", function: { name: "t", arguments: '{"a":' } }
    const unstorable = { id: "a", type: "function", function: { name: "t", arguments: '{"a":"\\ud800"}' } }
    for (const answer of [
      reply({ content: "done", reasoning_content: "hm" }, "stop"),
      reply({ reasoning_content: "hm", tool_calls: [broken] }),
      reply({ reasoning_content: "hm", tool_calls: [unstorable] }),
      reply({ reasoning_content: "hm", tool_calls: [call("a")] }, "length")
    ])
      assert.isUndefined(Result.getOrThrow(wholeOf("chat", answer)).reasoning)
  })

  it("gives calls the provider's own ids where its reasoning refers to them, each once", () => {
    const reasoning_details = [{ type: "reasoning.encrypted", data: "x", id: "tool_7", index: 0 }]
    const model = modelOf({ model: "google/gemini-3-pro" })
    const answer = Result.getOrThrow(wholeOf("chat", reply({ reasoning_details, tool_calls: [call("tool_7")] })))
    const messages = [...START, ...stepOf(model, answer), ...stepOf(model, answer, ["c-2-0"])]
    const sent = messagesOf(bodyOf(model, messages, [TOOL]))
    assert.deepStrictEqual(
      sent.slice(2).map((message) => message["tool_call_id"] ?? (message["tool_calls"] as [{ id: string }])[0].id),
      ["tool_7", "tool_7", "c-2-0", "c-2-0"]
    )
  })

  it("sends the signature of a call back with it, and a substitute for one that another model made", () => {
    const signed = { extra_content: { google: { thought_signature: "sig" } } }
    const answer = reply({ tool_calls: [call("a", signed), call("b")] })
    const [, , own] = replayed({ model: "gemini-3-pro" }, answer)
    assert.deepStrictEqual(own?.["tool_calls"], [call("c-1-0", signed), call("c-1-1")])
    const [, , foreign] = replayed({ model: "m" }, answer, { model: "gemini-3-pro" })
    assert.nestedPropertyVal(
      foreign,
      "tool_calls[0].extra_content.google.thought_signature",
      "skip_thought_signature_validator"
    )
  })

  it("fills in reasoning where a provider refuses calls without it", () => {
    const [, , assistant] = replayed({}, reply({ tool_calls: [call("a")] }), { model: "kimi-k2.5" })
    assert.deepStrictEqual(assistant?.["reasoning_content"], " ")
  })

  it("maps ids to the nine letters and digits of Mistral, alike in call and result, and lets an answer follow each result", () => {
    const step = stepOf(modelOf(), Result.getOrThrow(wholeOf("chat", reply({ tool_calls: [call("a"), call("b")] }))))
    const sent = messagesOf(
      bodyOf(modelOf({ model: "mistral-large-latest" }), [...START, ...step, { role: "user", content: "and?" }], [TOOL])
    )
    const { tool_calls } = sent[2] as { readonly tool_calls: ReadonlyArray<{ readonly id: string }> }
    const ids = tool_calls.map(({ id }) => id)
    for (const id of ids) assert.match(id, /^[A-Za-z0-9]{9}$/u)
    assert.strictEqual(new Set(ids).size, 2)
    assert.deepStrictEqual(
      sent.slice(3, 5).map(({ tool_call_id }) => tool_call_id),
      ids
    )
    assert.deepStrictEqual(
      sent.slice(5).map(({ role }) => role),
      ["assistant", "user"]
    )
  })

  it("marks the system message and the last two ends of requests for the cache of Claude behind a router", () => {
    const entry = { model: "anthropic/claude-sonnet-4.5" }
    const answer = Result.getOrThrow(wholeOf("chat", reply({ tool_calls: [call("a"), call("b")] })))
    const messages = [
      ...START,
      ...stepOf(modelOf(entry), answer),
      ...stepOf(modelOf(entry), answer, ["c-2-0", "c-2-1"])
    ]
    const marked = (model: object) =>
      messagesOf(bodyOf(modelOf({ ...entry, ...model }), messages, [TOOL])).flatMap((message, index) =>
        JSON.stringify(message).includes("cache_control") ? [index] : []
      )
    assert.deepStrictEqual(marked({}), [0, 4, 7])
    assert.deepStrictEqual(marked({ cache: "off" }), [])
  })

  it("keeps the bytes of earlier messages from request to request where no breakpoint moves", () => {
    const answer = Result.getOrThrow(wholeOf("chat", reply({ reasoning_content: "hm", tool_calls: [call("a")] })))
    const first = [...START, ...stepOf(modelOf(), answer)]
    const before = JSON.stringify(bodyOf(modelOf(), first)["messages"])
    const after = JSON.stringify(bodyOf(modelOf(), [...first, ...stepOf(modelOf(), answer, ["c-2-0"])])["messages"])
    assert.isTrue(after.startsWith(before.slice(0, -1)))
  })

  it("names the prompts that begin alike to OpenAI", () => {
    const openai = { endpoint: "https://api.openai.com/v1" }
    assert.strictEqual(bodyOf(modelOf(openai), START)["prompt_cache_key"], "session/edge")
    for (const entry of [{}, { ...openai, cache: "off" }])
      assert.notProperty(bodyOf(modelOf(entry), START), "prompt_cache_key")
  })

  it("asks models that refuse an effort beside tools for none, or leaves it out", () => {
    const effort = (model: string) =>
      bodyOf(modelOf({ model, reasoning_effort: "high" }), START, [TOOL])["reasoning_effort"]
    assert.deepStrictEqual(["gpt-5.1", "gpt-5.4", "gpt-5.6", "gpt-5.10", "gpt-6"].map(effort), [
      "high",
      undefined,
      "none",
      "none",
      "none"
    ])
  })

  it("reads the parts of a content in which a model thinks", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
      { type: "text", text: "four" }
    ]
    assert.strictEqual(Result.getOrThrow(wholeOf("chat", reply({ content }, "stop"))).content, "four")
  })

  it("takes an error with a status of success for what it is", () => {
    const answer = wholeOf("chat", { error: { code: 503, message: "no provider is left" } })
    assert.isTrue(Result.isFailure(answer) && answer.failure.kind === "http" && answer.failure.status === 503)
  })

  const piece = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
    choices: [{ index: 0, delta, finish_reason }],
    ...more
  })
  const usage = { prompt_tokens: 20, completion_tokens: 9 }
  const STREAM = [
    piece({ role: "assistant", content: "" }),
    piece({ reasoning_content: "h" }),
    piece({ reasoning_content: "m" }),
    piece({ content: "I lo" }),
    piece({ content: "ok." }),
    piece({ tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "choir-exec", arguments: "" } }] }),
    piece({ tool_calls: [{ index: 0, function: { arguments: '{"comm' } }] }),
    piece({ tool_calls: [{ index: 0, function: { arguments: 'and":"ls"}' } }] }),
    piece({ tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "choir-exec", arguments: "{}" } }] }),
    piece({}, "tool_calls"),
    { choices: [], usage },
    "[DONE]"
  ]
  const WHOLE = reply(
    {
      content: "I look.",
      reasoning_content: "hm",
      tool_calls: [call("a"), call("b", { function: { name: "choir-exec", arguments: "{}" } })]
    },
    "tool_calls",
    { usage }
  )

  for (const pieces of [1, 7, 10_000])
    it(`makes of a stream, ${pieces} characters at a time, what the whole answer says`, () => {
      const text = `: keep-alive\n\n${sse(STREAM)}`
      const { answer, heard } = streamOf("chat", text, pieces)
      assert.deepStrictEqual(answer, wholeOf("chat", WHOLE))
      assert.deepStrictEqual(heard, [
        { type: "thinking" },
        { type: "thinking" },
        { type: "text", text: "I lo" },
        { type: "text", text: "ok." },
        { type: "call", name: "choir-exec" },
        { type: "call", name: "choir-exec" }
      ])
    })

  it("puts the pieces of reasoning together, with the signature at their end", () => {
    const detail = (more: object) => piece({ reasoning_details: [{ type: "reasoning.text", index: 0, ...more }] })
    const { answer } = streamOf(
      "chat",
      sse([
        detail({ text: "h" }),
        detail({ text: "m", signature: null }),
        detail({ signature: "s" }),
        piece({ tool_calls: [{ index: 0, ...call("a") }] }, "tool_calls"),
        "[DONE]"
      ])
    )
    assert.deepStrictEqual(JSON.parse(Result.getOrThrow(answer).reasoning ?? ""), {
      reasoning_details: [{ type: "reasoning.text", index: 0, text: "hm", signature: "s" }]
    })
  })

  it("tells calls apart that all have the same index", () => {
    const { answer } = streamOf(
      "chat",
      sse([
        piece({ tool_calls: [{ index: 0, ...call("a") }] }),
        piece({ tool_calls: [{ index: 0, ...call("b") }] }),
        piece({ tool_calls: [{ index: 0, ...call("") }] }, "stop"),
        "[DONE]"
      ])
    )
    const { finish_reason, tool_calls } = Result.getOrThrow(answer)
    assert.deepStrictEqual(
      [finish_reason, tool_calls.map(({ input }) => input)],
      ["tool_calls", [{ command: "ls" }, { command: "ls" }, { command: "ls" }]]
    )
  })

  for (const [name, events, kind] of [
    ["ends before its answer does", [piece({ content: "half" })], "unreachable"],
    ["brings an error", [piece({ content: "half" }), { error: { code: 502, message: "upstream broke" } }], "http"],
    ["ends with an error", [piece({ content: "half" }), piece({}, "error")], "http"],
    ["holds nonsense", [piece({ content: 7 })], "malformed"],
    ["is no JSON", ["{"], "malformed"],
    ["is stopped by a filter", [piece({ content: "half" }, "content_filter"), "[DONE]"], "content_filter"]
  ] as const)
    it(`fails with a stream that ${name}`, () => {
      const { answer } = streamOf("chat", sse(events))
      assert.isTrue(Result.isFailure(answer))
      assert.strictEqual(Result.isFailure(answer) ? answer.failure.kind : "", kind)
    })
})
