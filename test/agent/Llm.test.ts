/** The client against a provider on a real socket: spec 7.7, E9, R26, and the hostile endpoint of the threat model. */
import { assert, describe, it } from "@effect/vitest"
import { NodeHttpClient } from "@effect/platform-node"
import { Deferred, Duration, Effect, Fiber, Layer, Logger, Redacted, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import type { AgentConfig } from "#schema/Config.ts"
import { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/AgentSettings.ts"
import { type ChatTool } from "#src/agent/chatCompletion.ts"
import { type Completion, Llm } from "#src/agent/Llm.ts"
import { SecretStore } from "#src/agent/SecretStore.ts"
import {
  MODEL_IDLE_MS_MAX,
  MODEL_REPLY_BYTES_MAX,
  MODEL_TOOL_ARGUMENT_BYTES_MAX,
  MODEL_TOOL_CALLS_MAX,
  MODEL_TOTAL_MS_MAX,
  MODEL_USAGE_TOKENS_MAX
} from "#src/shared/limits.ts"
import { agentConfig, settingsOf } from "../support/agent.ts"
import * as double from "../support/provider.ts"

const KEY = "sk-canary-0123456789"
const MESSAGES = [{ role: "user", content: "hi" }] as const
const TOOL: ChatTool = { type: "function", function: { name: "choir-exec", description: "d", parameters: {} } }

const decodeConfig = Schema.decodeUnknownSync(Config)
const configOf = (models: object): AgentConfig => ({
  ...agentConfig(),
  models: decodeConfig({ global_repo: { url: "/g" }, models }).models
})

/** One provider, bound as `small` with its key. `more` are further keys of the model, or further models. */
const asking = Effect.fnUntraced(function* (
  provider: double.Provider,
  more: object = {},
  models: object = {},
  tools: ReadonlyArray<ChatTool> = [],
  announced: Deferred.Deferred<void> = Deferred.makeUnsafe()
) {
  const small = { provider: "p", model: "m", endpoint: provider.endpoint, secret: "key", ...more }
  const waits: Array<number> = []
  const secrets = Layer.effectDiscard(
    Effect.flatMap(SecretStore, (store) => store.replaceAll(new Map([[SecretName.make("key"), Redacted.make(KEY)]])))
  ).pipe(Layer.provideMerge(SecretStore.layer))
  const layer = Llm.layer.pipe(
    Layer.provide([
      secrets,
      AgentSettings.layer(settingsOf(1, configOf({ small, ...models }))),
      NodeHttpClient.layerUndici
    ])
  )
  const completion = yield* Effect.flatMap(Llm, (llm) =>
    llm.complete("small", MESSAGES, tools, (wait) =>
      Effect.suspend(() => {
        waits.push(Duration.toMillis(wait))
        return Effect.asVoid(Deferred.succeed(announced, undefined))
      })
    )
  ).pipe(Effect.provide(layer))
  return { completion, waits }
})

const start = Effect.forkChild({ startImmediately: true })
const answering = Effect.fnUntraced(function* (...replies: ReadonlyArray<double.Reply>) {
  const provider = yield* double.makeProvider
  yield* provider.script(...replies)
  return (yield* asking(provider)).completion
})

const body = (message: unknown, more: object = {}): double.Reply =>
  double.raw(JSON.stringify({ choices: [{ message, finish_reason: "stop" }], ...more }))
const calling = (name: unknown, args: unknown): unknown => ({ tool_calls: [{ function: { name, arguments: args } }] })

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
  ["an empty content", body({ content: "" }), "malformed"],
  ["a blank content", body({ content: " \n\t" }), "malformed"],
  ["no content and no calls", body({ content: null, tool_calls: [] }), "malformed"],
  ["calls that are a text", body({ tool_calls: "choir-exec" }), "malformed"],
  ["a call without a function", body({ tool_calls: [{}] }), "malformed"],
  ["a call whose name is none", body(calling(1, "{}")), "malformed"],
  ["arguments that are no text", body(calling("choir-exec", { a: 1 })), "malformed"],
  ["too many calls", double.manyToolCalls(MODEL_TOOL_CALLS_MAX + 1, "choir-exec"), "malformed"],
  ["ten thousand calls", double.manyToolCalls(10_000, "choir-exec"), "malformed"],
  [
    "arguments that are too large",
    double.callTools([{ name: "t", input: "a".repeat(MODEL_TOOL_ARGUMENT_BYTES_MAX + 1) }]),
    "too_large"
  ],
  [
    "arguments too large in bytes alone",
    double.callTools([{ name: "t", input: "é".repeat(MODEL_TOOL_ARGUMENT_BYTES_MAX / 2 + 1) }]),
    "too_large"
  ],
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
  ["529 with a page", double.raw("<html>".repeat(1000), 529, "text/html"), "http"],
  ["204", Effect.succeed(HttpServerResponse.empty({ status: 204 })), "malformed"],
  ["a failure without an end", Effect.map(double.endless, (reply) => HttpServerResponse.setStatus(reply, 500)), "http"],
  ["a connection that is cut", double.cut(), "unreachable"],
  ["a connection that is cut midway", double.cut('{"choices":'), "unreachable"]
]

describe("Llm", () => {
  it.effect("asks as the protocol says and understands text, calls and usage", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(
        double.callTools([{ name: "choir-exec", input: { command: "ls" } }], "I look."),
        double.answer("done", { usage: { prompt_tokens: 1000, completion_tokens: 200 } })
      )
      const price = { input: 3, output: 15 }
      const more = { price, temperature: 0.2, reasoning_effort: "low", max_tokens: 77 }
      const first = (yield* asking(provider, more, {}, [TOOL])).completion
      assert.deepStrictEqual(
        [first.text, first.tool_calls, first.finish_reason],
        ["I look.", [{ name: "choir-exec", input: { command: "ls" } }], "tool_calls"]
      )
      const second = (yield* asking(provider, { ...more, temperature: null })).completion
      assert.deepStrictEqual(second.usage, { input_tokens: 1000, output_tokens: 200, cost_usd: 0.006 })
      const [asked, bare] = yield* provider.requests.all
      assert.deepStrictEqual(asked?.body, {
        model: "m",
        messages: MESSAGES,
        max_tokens: 77,
        temperature: 0.2,
        reasoning_effort: "low",
        tools: [TOOL]
      })
      assert.strictEqual(asked?.path, "/v1/chat/completions")
      assert.strictEqual(asked?.headers["authorization"], `Bearer ${KEY}`)
      assert.doesNotHaveAnyKeys(bare?.body, ["tools", "temperature"])
    })
  )

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

  it.effect("after a 429 announces the wait once, obeys it up to a minute and asks exactly once more (R26)", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const waits: ReadonlyArray<readonly [Parameters<typeof double.rateLimited>[0], number]> = [
        [undefined, 1000],
        [{ seconds: 7 }, 7000],
        [{ seconds: 0 }, 0],
        [{ seconds: 3600 }, 60_000],
        [{ seconds: 9e15 }, 60_000],
        [{ date_in_seconds: 30 }, 30_000],
        [{ date_in_seconds: -30 }, 0]
      ]
      for (const [limit, wait] of waits) {
        const provider = yield* double.makeProvider
        yield* provider.script(double.rateLimited(limit), double.answer("at last"))
        const announced = yield* Deferred.make<void>()
        const asked = yield* start(asking(provider, {}, {}, [], announced))
        const first = yield* provider.requests.at(0)
        yield* Deferred.await(announced)
        yield* TestClock.adjust(wait)
        const { completion, waits } = yield* Fiber.join(asked)
        assert.deepStrictEqual([completion.text, waits], ["at last", [wait]])
        const second = yield* provider.requests.at(1)
        assert.isAtLeast(second.at_ms - first.at_ms, wait)
      }
    })
  )

  it.effect(
    "gives up after a second 429 without a second notice, and fallbacks then take over in order (R26, E9)",
    () =>
      Effect.gen(function* () {
        const zero = double.rateLimited({ seconds: 0 })
        const first = yield* double.makeProvider
        yield* first.script(zero, zero)
        const { completion, waits } = yield* asking(first)
        assert.deepStrictEqual(
          [completion.error?.kind, completion.error?.status, waits, (yield* first.requests.all).length],
          ["rate_limited", 429, [0], 2]
        )
        yield* first.script(zero, zero)
        const broken = yield* double.makeProvider
        yield* broken.script(double.failing(503))
        const good = yield* double.makeProvider
        yield* good.script(double.answer("from the last"))
        const model = (provider: double.Provider) => ({ provider: "p", model: "m", endpoint: provider.endpoint })
        const more = yield* asking(
          first,
          { fallback: ["second", "third"] },
          { second: model(broken), third: model(good), fourth: model(good) }
        )
        assert.deepStrictEqual(
          [more.completion.model, more.completion.text, more.waits],
          ["third", "from the last", [0]]
        )
        for (const provider of [broken, good])
          assert.isUndefined((yield* provider.requests.all)[0]?.headers["authorization"], "a key of another model")
      }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("leaves to a person what another model would not do better (E9)", () =>
    Effect.gen(function* () {
      for (const reply of [double.failing(401), double.failing(400), double.raw("{}"), double.contentFilter()]) {
        const provider = yield* double.makeProvider
        const other = yield* double.makeProvider
        yield* provider.script(reply)
        const second = { provider: "p", model: "m", endpoint: other.endpoint }
        const { completion } = yield* asking(provider, { fallback: ["second"] }, { second })
        assert.isDefined(completion.error)
        assert.deepStrictEqual(yield* other.requests.all, [])
      }
    })
  )

  it.effect("gives up on an answer that stalls after its beginning, and on one that never begins", () =>
    Effect.gen(function* () {
      for (const [reply, limit, said] of [
        [double.dripping("slow", MODEL_IDLE_MS_MAX * 2), MODEL_IDLE_MS_MAX, "nothing came for 60 s"],
        [double.hang, MODEL_TOTAL_MS_MAX, "no whole answer in 10 minutes"]
      ] as const) {
        const provider = yield* double.makeProvider
        yield* provider.script(reply)
        const asked = yield* start(asking(provider))
        yield* provider.requests.at(0)
        while (asked.pollUnsafe() === undefined) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          yield* TestClock.adjust(limit / 100)
        }
        const { completion } = yield* Fiber.join(asked)
        assert.deepStrictEqual(
          [completion.error?.kind, completion.error?.message],
          ["timeout", `the model "small": ${said}`]
        )
      }
    })
  )

  it.effect("names the endpoint and what to check when nobody answers there", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      const endpoint = "http://127.0.0.1:1/v1"
      const { completion } = yield* asking(provider, { endpoint })
      assert.strictEqual(completion.error?.kind, "unreachable")
      assert.include(completion.error?.message, `"small": it cannot be reached at ${endpoint} (is it running`)
    })
  )

  it.effect("says what to check for a refused key and for a wrong address, in the provider's words", () =>
    Effect.gen(function* () {
      const said = (yield* answering(double.failing(401, "invalid   api\nkey"))).error?.message
      assert.match(said ?? "", /answered 401 \(is the model's secret right\? choirctl secret set\).*invalid +api/u)
      assert.include((yield* answering(double.failing(404))).error?.message, "endpoint and name")
    })
  )

  it.effect("never repeats the key in an error, even where the provider does (R32)", () =>
    Effect.gen(function* () {
      for (const status of [200, 400, 401, 429, 500]) {
        const echo = double.raw(`you sent Authorization: Bearer ${KEY}`, status)
        const provider = yield* double.makeProvider
        yield* provider.script(echo, echo)
        const asked = yield* start(asking(provider))
        while (asked.pollUnsafe() === undefined) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          yield* TestClock.adjust("100 millis")
        }
        const { completion } = yield* Fiber.join(asked)
        assert.include(completion.error?.message, "<redacted>")
        assert.notInclude(JSON.stringify(completion), KEY)
      }
    })
  )
})
