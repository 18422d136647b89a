/** The client against a provider on a real socket: errors, retries and fallbacks (E9, R26). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import type { Tool } from "#src/shared/model/Conversation.ts"
import type { Unanswered } from "#src/agent/model/Llm.ts"
import { answering, asking, KEY, MESSAGES } from "../../support/askedModel.ts"
import * as double from "../../support/testing/Provider.ts"
import { MODEL_TOTAL_MS_MAX, OUTPUT_TOKENS_PER_SECOND_MAX } from "#src/agent/model/Llm.ts"
import { FIRST_BYTE_MS_MAX } from "#src/agent/model/modelRequest.ts"
import { MODEL_IDLE_MS_MAX } from "#src/agent/model/answerSilence.ts"

const TOOL: Tool = { name: "choir-exec", description: "d", parameters: { type: "object" } }
const STREAMED = { stream: true, stream_options: { include_usage: true } }
/** The default of config.json. */
const MAX_TOKENS = 4096
const start = Effect.forkChild({ startImmediately: true })

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
        ...STREAMED,
        tools: [{ type: "function", function: TOOL }]
      })
      assert.strictEqual(asked?.path, "/v1/chat/completions")
      assert.strictEqual(asked?.headers["authorization"], `Bearer ${KEY}`)
      assert.doesNotHaveAnyKeys(bare?.body, ["tools", "temperature"])
    })
  )

  it.effect("sends a model's request template: what it adds, replaces and leaves out", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ extensions: ["provider"] })
      yield* provider.script(double.answer("a"), double.answer("b"))
      const request_template = {
        max_tokens: null,
        max_completion_tokens: 8000,
        top_p: 0.9,
        provider: { order: ["x", null] }
      }
      yield* asking(provider, { temperature: null, request_template })
      yield* asking(provider, { request_template: { temperature: 1, unknown: null } })
      const [first, second] = yield* provider.requests.all
      const asked = { model: "m", messages: MESSAGES, ...STREAMED }
      assert.deepStrictEqual<unknown>(first?.body, {
        ...asked,
        max_completion_tokens: 8000,
        top_p: 0.9,
        provider: { order: ["x", null] }
      })
      assert.deepStrictEqual<unknown>(second?.body, { ...asked, max_tokens: 4096, temperature: 1 })
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

  it.effect("waits likewise for a limit that is told in an answer of success, and gives a timeout to a fallback", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      const limited = double.raw(JSON.stringify({ error: { code: 429, message: "Rate limit exceeded" } }))
      yield* provider.script(limited, double.answer("at last"))
      const announced = yield* Deferred.make<void>()
      const asked = yield* start(asking(provider, {}, {}, [], announced))
      yield* Deferred.await(announced)
      yield* TestClock.adjust(1000)
      assert.strictEqual((yield* Fiber.join(asked)).completion.text, "at last")
      const other = yield* double.makeProvider
      yield* other.script(double.answer("from the other"))
      yield* provider.script(double.failing(408))
      const model = { provider: "p", model: "m", endpoint: other.endpoint }
      const { completion } = yield* asking(provider, { fallback: ["second"] }, { second: model })
      assert.deepStrictEqual([completion.model, completion.text], ["second", "from the other"])
    }).pipe(Effect.provide(Logger.layer([])))
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

  it.effect("waits as long as an overloaded provider says and asks once more", () =>
    Effect.gen(function* () {
      for (const status of [503, 529] as const) {
        const provider = yield* double.makeProvider
        yield* provider.script(double.overloaded(status, 0), double.answer("here"))
        const { completion, waits } = yield* asking(provider)
        assert.deepStrictEqual([completion.text, waits], ["here", [0]])
        yield* provider.script(double.overloaded(status, 0), double.overloaded(status, 0))
        const { error } = (yield* asking(provider)).completion
        assert.deepStrictEqual([error?.kind, error?.status, error?.retry_after_ms], ["rate_limited", status, 0])
        assert.include(error?.message, `the provider is overloaded (${status})`)
      }
    })
  )

  it.effect("asks an overloaded provider that says no time once more after 5 s, if nothing else can take over", () =>
    Effect.gen(function* () {
      for (const status of [503, 529] as const) {
        const provider = yield* double.makeProvider
        yield* provider.script(double.failing(status), double.answer("here"), double.failing(500))
        const announced = yield* Deferred.make<void>()
        const asked = yield* start(asking(provider, {}, {}, [], announced))
        yield* Deferred.await(announced)
        yield* TestClock.adjust(5000)
        const { completion, waits } = yield* Fiber.join(asked)
        assert.deepStrictEqual([completion.text, waits], ["here", [5000]])
        assert.strictEqual((yield* asking(provider)).completion.error?.status, 500)
      }
    })
  )

  it.effect("names both causes when the fallback is wrong as well, and keeps that the first model may be back", () =>
    Effect.gen(function* () {
      const first = yield* double.makeProvider
      yield* first.script(double.failing(500, "on fire"))
      const wrong = yield* double.makeProvider
      yield* wrong.script(double.failing(404, "no such model"))
      const second = { provider: "p", model: "3/15", endpoint: wrong.endpoint }
      const { completion } = yield* asking(first, { fallback: ["second"] }, { second })
      assert.match(completion.error?.message ?? "", /500.*; then the model "second": .*404/su)
      assert.deepStrictEqual([completion.model, completion.error?.status], ["second", 500])
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("lets a fallback be the same endpoint under a second name", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(double.failing(503), double.answer("from the same"))
      const second = { provider: "p", model: "m", endpoint: provider.endpoint }
      const { completion, waits } = yield* asking(provider, { fallback: ["second"] }, { second })
      assert.deepStrictEqual([completion.model, completion.text, waits], ["second", "from the same", []])
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect(
    "asks once more after a connection that broke before the answer, and not after one that broke within it",
    () =>
      Effect.gen(function* () {
        for (const [replies, text, requests] of [
          [[double.cut(), double.answer("here")], "here", 2],
          [[double.cut(), double.cut(), double.answer("late")], undefined, 2],
          [[double.cut('{"choices":'), double.answer("late")], undefined, 1]
        ] as const) {
          const provider = yield* double.makeProvider
          yield* provider.script(...replies)
          const { completion, waits } = yield* asking(provider)
          assert.strictEqual(completion.text, text)
          assert.strictEqual(completion.error?.kind, text === undefined ? "unreachable" : undefined)
          assert.deepStrictEqual([(yield* provider.requests.all).length, waits], [requests, []])
        }
      }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("counts what every attempt may have cost, each at the price of its model (D28)", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 1000, completion_tokens: 200 }
      const price = { input: 1e6, output: 1 }
      const alone = yield* double.makeProvider
      yield* alone.script(double.cut('{"choices":'))
      const broken = (yield* asking(alone, { price })).completion.usage
      assert.isAbove(broken.input_tokens, 0)
      // A body that its server announced was written by then, here of 12 bytes.
      assert.strictEqual(broken.output_tokens, 3)
      assert.closeTo(broken.cost_usd ?? 0, broken.input_tokens + 3e-6, 1e-9)

      yield* alone.script(double.cut(), double.answer("here", { usage }))
      const twice = (yield* asking(alone, { price })).completion.usage
      assert.deepStrictEqual([twice.input_tokens, twice.output_tokens], [1000 + broken.input_tokens, 200])
      assert.closeTo(twice.cost_usd ?? 0, twice.input_tokens + 200e-6, 1e-9)

      const late = yield* double.makeProvider
      yield* late.script(double.hang)
      yield* alone.script(double.answer("from the fallback", { usage }))
      const second = { provider: "p", model: "m", endpoint: alone.endpoint, price: { input: 2e6, output: 0 } }
      const asked = yield* start(asking(late, { price, fallback: ["second"] }, { second }))
      yield* late.requests.at(0)
      while (asked.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust(MODEL_TOTAL_MS_MAX / 100)
      }
      const { completion } = yield* Fiber.join(asked)
      assert.strictEqual(completion.text, "from the fallback")
      // In a minute and a half the first model may have written all that it was allowed to.
      assert.deepStrictEqual(
        [completion.usage.input_tokens, completion.usage.output_tokens],
        [1000 + broken.input_tokens, MAX_TOKENS + 200]
      )
      assert.closeTo(completion.usage.cost_usd ?? 0, 2000 + broken.input_tokens + MAX_TOKENS / 1e6, 1e-9)
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect(
    "counts for an answer that did not come whole what may be written in its time, up to max_tokens (D28)",
    () =>
      Effect.gen(function* () {
        const most = OUTPUT_TOKENS_PER_SECOND_MAX * (MODEL_IDLE_MS_MAX / 1000)
        for (const [max_tokens, expected] of [
          [2 * most, [most, 2 * most]],
          [77, [77, 77]]
        ] as const) {
          const provider = yield* double.makeProvider
          yield* provider.script(double.dripping("slow", MODEL_IDLE_MS_MAX * 2))
          const asked = yield* start(asking(provider, { max_tokens }))
          yield* provider.requests.at(0)
          while (asked.pollUnsafe() === undefined) {
            yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
            yield* TestClock.adjust(MODEL_IDLE_MS_MAX / 100)
          }
          const { error, usage } = (yield* Fiber.join(asked)).completion
          assert.strictEqual(error?.kind, "timeout")
          // The silence is counted from the first bytes on, which came while the clock went.
          assert.isAtLeast(usage.output_tokens, expected[0])
          assert.isAtMost(usage.output_tokens, expected[1])
        }
      })
  )

  it.effect("counts for a call that is interrupted what may be written until then, and nothing more (D28)", () =>
    Effect.gen(function* () {
      for (const [after_ms, output_tokens] of [
        [0, 0],
        [1000, OUTPUT_TOKENS_PER_SECOND_MAX],
        [FIRST_BYTE_MS_MAX - 1, MAX_TOKENS]
      ] as const) {
        const provider = yield* double.makeProvider
        yield* provider.script(double.hang)
        const costs: Array<Unanswered> = []
        const asked = yield* start(
          asking(provider, {}, {}, [], undefined, (cost) => Effect.sync(() => costs.push(cost)))
        )
        yield* provider.requests.at(0)
        yield* TestClock.adjust(after_ms)
        yield* Fiber.interrupt(asked)
        assert.deepStrictEqual(
          costs.map(({ latency_ms, usage }) => [latency_ms, usage.output_tokens]),
          [[after_ms, output_tokens]]
        )
        assert.isAbove(costs[0]?.usage.input_tokens ?? 0, 0)
      }
    })
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

  it.effect("leaves a refused parameter out and asks once more, however often the provider names it", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      const refusal = JSON.stringify({
        error: {
          message: "Unsupported value: 'temperature' does not support 0.7 with this model.",
          param: "temperature"
        }
      })
      yield* provider.otherwise(() => double.raw(refusal, 400))
      const { completion } = yield* asking(provider)
      assert.deepStrictEqual([completion.error?.kind, completion.error?.status], ["http", 400])
      const temperatures = (yield* provider.requests.all).map(
        ({ body }) => (body as Readonly<Record<string, unknown>>)["temperature"]
      )
      assert.deepStrictEqual(temperatures, [0.7, undefined])
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("gives up on an answer that stalls after its beginning, and on one that never begins", () =>
    Effect.gen(function* () {
      for (const [reply, limit, said] of [
        [double.dripping("slow", MODEL_IDLE_MS_MAX * 2), MODEL_IDLE_MS_MAX, "nothing arrived for 180 s"],
        [double.hang, FIRST_BYTE_MS_MAX, "it took the question and said nothing for 90 s"]
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
      assert.match(completion.error?.message ?? "", /right\?\): connect ECONNREFUSED 127\.0\.0\.1:1$/u)
    })
  )

  it.effect("says what to check for a refused key and for a wrong address, in the provider's words", () =>
    Effect.gen(function* () {
      const said = (yield* answering(double.failing(401, "invalid   api\nkey"))).error?.message
      assert.match(
        said ?? "",
        /answered 401 \(is the model's secret right\? choirctl secret set [a-z-]+\).*invalid +api/u
      )
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
