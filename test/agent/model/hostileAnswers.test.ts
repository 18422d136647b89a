/** The hostile endpoint of the threat model: whatever it answers is an error in words, or an answer that makes sense. */
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Completion } from "#src/agent/model/Llm.ts"
import { answering, asking } from "../../support/askedModel.ts"
import * as double from "../../support/testing/Provider.ts"
import { MODEL_TOOL_ARGUMENT_BYTES_MAX, MODEL_TOOL_CALLS_MAX } from "#src/shared/model/Answer.ts"
import { MODEL_REPLY_BYTES_MAX } from "#src/shared/model/codecs.ts"
import { MODEL_USAGE_TOKENS_MAX } from "#src/shared/model/requestParameters.ts"

const body = (message: unknown, more: object = {}): double.Reply =>
  double.raw(JSON.stringify({ choices: [{ message, finish_reason: "stop" }], ...more }))
const called = (name: string) => ({ id: name, type: "function", function: { name, arguments: "{}" } })
const ran = (name: string) => ({ name, input: {} })
const calling = (name: unknown, args: unknown): unknown => ({ tool_calls: [{ function: { name, arguments: args } }] })

/** Nobody asked for compression, so nothing is unpacked: a bomb stays as small as it is. */
const compressed: double.Reply = Effect.sync(() =>
  HttpServerResponse.uint8Array(gzipSync(Buffer.alloc(1_000_000, 97)), {
    contentType: "application/json",
    headers: { "content-encoding": "gzip" }
  })
)

/** What is odd and still an answer, and what is taken from it. */
const ODD: ReadonlyArray<readonly [string, double.Reply, Partial<Completion>]> = [
  [
    "a call in prose",
    body({ content: '<tool_call>{"name":"choir-exec","arguments":{}}</tool_call>' }),
    {
      text: '<tool_call>{"name":"choir-exec","arguments":{}}</tool_call>',
      tool_calls: []
    }
  ],
  ["reasoning before the answer", body({ content: "\n<think>a <b> secret</think>\n\nFour." }), { text: "Four." }],
  ["reasoning that is only quoted", body({ content: "Say <think>x</think>." }), { text: "Say <think>x</think>." }],
  [
    "reasoning whose beginning stood in the prompt",
    body({ content: "The user greets me.\nI answer.\n</think>\n\nHello." }),
    { text: "Hello." }
  ],
  [
    "the end of reasoning that is quoted",
    body({ content: "Write </think> there." }),
    { text: "Write </think> there." }
  ],
  [
    "both ends of reasoning that are quoted",
    body({ content: "Between\n<think>\nand\n</think>\nit thinks." }),
    { text: "Between\n<think>\nand\n</think>\nit thinks." }
  ],
  [
    "prose that finishes for calls",
    double.raw('{"choices":[{"finish_reason":"tool_calls","message":{"content":"a"}}]}'),
    {
      text: "a",
      tool_calls: [],
      finish_reason: "tool_calls"
    }
  ],
  ["no reason to finish", double.raw('{"choices":[{"message":{"content":"a"}}]}'), { finish_reason: "stop" }],
  ["keys that nobody knows", body({ content: "a", refusal: null, audio: { id: 1 } }, { x: [[[]]] }), { text: "a" }],
  [
    "a thousand choices",
    double.raw(`{"choices":[${Array.from({ length: 1000 }, (_, n) => `{"message":{"content":"${n}"}}`).join(",")}]}`),
    { text: "0" }
  ],
  ["NUL and half characters", body({ content: "a\u0000\ud800" }), { text: "a\u0000\ud800" }],
  [
    "keys of the prototype",
    body(calling("t", '{"__proto__":{"x":1},"constructor":1}')),
    {
      tool_calls: [{ name: "t", input: JSON.parse('{"__proto__":{"x":1},"constructor":1}') }]
    }
  ],
  ["a name that is empty", body(calling("", "{}")), { tool_calls: [{ name: "", input: {} }] }],
  [
    "calls that are an empty object",
    body({ content: "a", tool_calls: {} }),
    { text: "a", tool_calls: [], finish_reason: "stop" }
  ],
  [
    "calls in an object",
    body({ tool_calls: { 0: called("t"), 1: called("u") } }),
    { tool_calls: [ran("t"), ran("u")] }
  ],
  ["a call that is in no list", body({ tool_calls: called("t") }), { tool_calls: [ran("t")] }],
  [
    "a call without a function beside another",
    body({ tool_calls: [{ id: "a", function: null }, null, {}, called("t")] }),
    { tool_calls: [ran(""), ran(""), ran("t")] }
  ],
  ["a name that is a path", body(calling("../../bin/sh", "[]")), { tool_calls: [{ name: "../../bin/sh", input: [] }] }],
  [
    "the same id twice",
    body({ tool_calls: [1, 2].map(() => ({ id: "x", function: { name: "t", arguments: "1" } })) }),
    {
      tool_calls: [
        { name: "t", input: 1 },
        { name: "t", input: 1 }
      ]
    }
  ],
  ["arguments that are no text", body(calling("t", { a: 1 })), { tool_calls: [{ name: "t", input: { a: 1 } }] }],
  [
    "usage that is a text",
    body({ content: "a" }, { usage: { prompt_tokens: "1000", completion_tokens: [] } }),
    { text: "a" }
  ],
  [
    "the wrong type of content",
    double.raw('{"choices":[{"message":{"content":"a"}}]}', 200, "text/html"),
    { text: "a" }
  ],
  ["another status of success", double.raw('{"choices":[{"message":{"content":"a"}}]}', 201), { text: "a" }]
]

/** What an endpoint may answer that is no use, and what is made of it. */
const HOSTILE: ReadonlyArray<readonly [string, double.Reply, NonNullable<Completion["error"]>["kind"]]> = [
  ["nothing", double.raw(""), "malformed"],
  ["a page", double.raw("<html>hello</html>", 200, "text/html"), "malformed"],
  ["half of a JSON text", double.raw('{"choices":[{"mess'), "malformed"],
  ["null", double.raw("null"), "malformed"],
  ["a list", double.raw("[]"), "malformed"],
  ["a number", double.raw("1e999"), "malformed"],
  ["bytes that are no UTF-8", double.raw("\uFFFD\u0000\u0001"), "malformed"],
  ["an empty object", double.raw("{}"), "malformed"],
  ["no choices", double.raw('{"choices":[]}'), "malformed"],
  ["choices that are none", double.raw('{"choices":{"0":1}}'), "malformed"],
  ["a choice without a message", double.raw('{"choices":[{}]}'), "malformed"],
  ["a message that is a text", body("hi"), "malformed"],
  ["a content that is a list", body({ content: ["hi"] }), "malformed"],
  ["a content that is a number", body({ content: 7 }), "malformed"],
  ["calls that are a text", body({ tool_calls: "choir-exec" }), "malformed"],
  ["a call whose name is none", body(calling(1, "{}")), "malformed"],
  ["an answer that is too large", double.oversize(MODEL_REPLY_BYTES_MAX), "too_large"],
  ["an answer without an end", double.endless, "too_large"],
  ["what the filter cut off", double.contentFilter("half"), "content_filter"],
  ["a redirect to elsewhere", double.redirect("http://127.0.0.1:9/v1/chat/completions"), "http"],
  ["a permanent redirect", double.redirect("/elsewhere", 308), "http"],
  ["a redirect that would change the method", double.redirect("/elsewhere", 303), "http"],
  ["400", double.failing(400, "context_length_exceeded"), "http"],
  ["401", double.failing(401), "http"],
  ["404", double.failing(404), "http"],
  ["500", double.failing(500), "http"],
  ["a redirect without a target", double.raw("", 302), "http"],
  ["429 twice", double.rateLimited({ seconds: 0 }), "rate_limited"],
  [
    "a stream without an answer",
    double.raw('data: {"choices":[]}\n\ndata: [DONE]\n', 200, "text/event-stream"),
    "unreachable"
  ],
  ["two answers in one", double.raw('{"choices":[]}{"choices":[]}'), "malformed"],
  ["a choice that is null", double.raw('{"choices":[null]}'), "malformed"],
  ["a million open brackets", double.raw("[".repeat(1_000_000)), "malformed"],
  ["compressed bytes", compressed, "malformed"],
  [
    "a reason to finish that is a number",
    double.raw('{"choices":[{"finish_reason":1,"message":{"content":"a"}}]}'),
    "malformed"
  ],
  ["502 with a page", double.raw("<html>".repeat(1000), 502, "text/html"), "http"],
  ["204", Effect.succeed(HttpServerResponse.empty({ status: 204 })), "malformed"],
  ["a failure without an end", Effect.map(double.endless, (reply) => HttpServerResponse.setStatus(reply, 500)), "http"],
  ["a connection that is cut", double.cut(), "unreachable"],
  ["a connection that is cut midway", double.cut('{"choices":'), "unreachable"]
]

describe("a hostile answer", () => {
  for (const [what, reply, kind] of HOSTILE)
    it.effect(`takes ${what} for a failed call of kind ${kind}`, () =>
      Effect.gen(function* () {
        const { error, ...rest } = yield* answering(reply)
        assert.strictEqual(error?.kind, kind, error?.message)
        assert.deepStrictEqual([rest.text, rest.tool_calls, rest.finish_reason], [undefined, [], "error"])
        assert.isBelow(error?.message.length ?? 0, 600)
        assert.notInclude(error?.message, "\n")
      })
    )

  for (const [what, reply, expected] of ODD)
    it.effect(`takes ${what} for an answer`, () =>
      Effect.gen(function* () {
        const completion = yield* answering(reply)
        assert.isUndefined(completion.error)
        assert.deepStrictEqual<unknown>({ ...completion, ...expected }, completion)
        assert.isAtLeast(completion.usage.input_tokens, 10)
      })
    )

  it.effect("takes an answer without text and calls as it is, so that the lane can ask for a better one", () =>
    Effect.gen(function* () {
      const replies = [
        body({ content: "" }),
        body({ content: " \n\t" }),
        body({ content: null, tool_calls: [] }),
        body({ content: null, function_call: { name: "choir-exec", arguments: "{}" } })
      ]
      for (const reply of replies) {
        const { error, text, tool_calls } = yield* answering(reply)
        assert.deepStrictEqual([error, text, tool_calls], [undefined, undefined, []])
      }
    })
  )

  it.effect("refuses each call beyond the limit, and says with the last one how many more have no result", () =>
    Effect.gen(function* () {
      for (const [count, kept, more] of [
        [MODEL_TOOL_CALLS_MAX, MODEL_TOOL_CALLS_MAX, undefined],
        [MODEL_TOOL_CALLS_MAX + 1, MODEL_TOOL_CALLS_MAX + 1, undefined],
        [2 * MODEL_TOOL_CALLS_MAX, 2 * MODEL_TOOL_CALLS_MAX, undefined],
        [2 * MODEL_TOOL_CALLS_MAX + 1, 2 * MODEL_TOOL_CALLS_MAX, /The call behind it was not run either/u],
        [10_000, 2 * MODEL_TOOL_CALLS_MAX, /The 9936 calls behind it were not run either/u]
      ] as const) {
        const { error, tool_calls } = yield* answering(double.manyToolCalls(count, "choir-exec"))
        assert.isUndefined(error)
        assert.deepStrictEqual(
          tool_calls.map(({ refused }) => refused?.includes(`more than ${MODEL_TOOL_CALLS_MAX} calls`) === true),
          Array.from({ length: kept }, (_, index) => index >= MODEL_TOOL_CALLS_MAX)
        )
        const telling = tool_calls.flatMap(({ refused }, index) => (/behind/u.test(refused ?? "") ? [index] : []))
        assert.deepStrictEqual(telling, more === undefined ? [] : [kept - 1])
        if (more !== undefined) assert.match(tool_calls.at(-1)?.refused ?? "", more)
      }
    })
  )

  it.effect("refuses a call alone whose arguments are too large, in characters or in bytes", () =>
    Effect.gen(function* () {
      const fits = `"${"a".repeat(MODEL_TOOL_ARGUMENT_BYTES_MAX - 2)}"`
      const inputs = [fits, `${fits} `, "é".repeat(MODEL_TOOL_ARGUMENT_BYTES_MAX / 2 + 1), "{}"]
      const { tool_calls } = yield* answering(double.callTools(inputs.map((input) => ({ name: "t", input }))))
      assert.deepStrictEqual(
        tool_calls.map(({ refused }) => refused === undefined),
        [true, false, false, true]
      )
      assert.deepStrictEqual(tool_calls[1]?.input, {})
    })
  )

  it.effect("counts the prompt of a useless answer, unless the provider refused to answer (D28)", () =>
    Effect.gen(function* () {
      for (const [reply, isBilled] of [
        [double.raw("{}"), true],
        [double.contentFilter("half"), true],
        [double.failing(500), false],
        [double.cut(), true],
        [double.cut('{"choices":'), true]
      ] as const) {
        const provider = yield* double.makeProvider
        yield* provider.script(reply, reply)
        const { usage } = (yield* asking(provider, { price: { input: 1e6, output: 0 } })).completion
        assert.strictEqual(usage.input_tokens > 10, isBilled)
        assert.strictEqual(usage.cost_usd, usage.input_tokens)
      }
    })
  )

  it.effect("says of a redirect that it was not followed", () =>
    Effect.gen(function* () {
      const { error } = yield* answering(double.redirect("https://elsewhere.example/v1/chat/completions", 308))
      assert.include(
        error?.message,
        "answered 308 (a redirect, which is never followed: is the model's endpoint right?)"
      )
    })
  )

  it.effect("never follows a redirect, so that nobody else sees the key or the prompt", () =>
    Effect.gen(function* () {
      const other = yield* double.makeProvider
      const provider = yield* double.makeProvider
      yield* provider.script(double.redirect(`${other.endpoint}/chat/completions`, 307))
      yield* asking(provider)
      assert.deepStrictEqual(yield* other.requests.all, [])
    })
  )

  it.effect("keeps arguments that do not parse, or nest too deep, as the text that they are", () =>
    Effect.gen(function* () {
      const deep = "[".repeat(20_000) + "]".repeat(20_000)
      const inputs = ["{broken", "", deep, "3", '{"a":1}', "NaN"]
      const { tool_calls } = yield* answering(double.callTools(inputs.map((input) => ({ name: "t", input }))))
      assert.deepStrictEqual(
        tool_calls.map(({ input }) => input),
        ["{broken", {}, deep, 3, { a: 1 }, "NaN"]
      )
    })
  )

  it.effect("takes the greater of reported and estimated usage, and nonsense for nothing (D28)", () =>
    Effect.gen(function* () {
      const usages: ReadonlyArray<readonly [unknown, unknown]> = [
        [undefined, 100],
        [null, 100],
        [{ prompt_tokens: -5, completion_tokens: -5 }, 100],
        [{ prompt_tokens: 0.5, completion_tokens: "many" }, 100],
        [{ prompt_tokens: 1e300, completion_tokens: 1 }, 100],
        [{ completion_tokens: 5000 }, 5000],
        [{ completion_tokens: Number.MAX_SAFE_INTEGER }, MODEL_USAGE_TOKENS_MAX]
      ]
      for (const [usage, output_tokens] of usages) {
        const completion = yield* answering(double.answer("a".repeat(400), { usage }))
        assert.strictEqual(completion.usage.output_tokens, output_tokens, JSON.stringify(usage))
        assert.isAtLeast(completion.usage.input_tokens, 10)
      }
    })
  )

  it.effect("cuts what it passes on: names of tools and reasons to finish", () =>
    Effect.gen(function* () {
      const long = "x".repeat(100_000)
      const choices = [{ message: calling(long, "{}"), finish_reason: long }]
      const completion = yield* answering(double.raw(JSON.stringify({ choices })))
      assert.isAtMost(completion.finish_reason.length, 64)
      assert.isAtMost(completion.tool_calls[0]?.name.length ?? 0, 128)
    })
  )
})
