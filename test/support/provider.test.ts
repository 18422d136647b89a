import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Fiber, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as double from "./testing/Provider.ts"

const system = { role: "system", content: "You are an agent." }
const CALL = { model: "offline-model", messages: [system, { role: "user", content: "say hi" }] }

const BAD_TOOL = { type: "function", function: { name: "a", description: "A", parameters: {} } }

const post = Effect.fnUntraced(function* (provider: double.Provider, body: unknown = CALL) {
  const client = yield* HttpClient.HttpClient
  const url = `${provider.endpoint}/chat/completions`
  return yield* client.execute(HttpClientRequest.post(url).pipe(HttpClientRequest.bodyJsonUnsafe(body)))
})

const Completion = Schema.Struct({
  choices: Schema.Array(
    Schema.Struct({
      message: Schema.Struct({
        content: Schema.NullOr(Schema.String),
        tool_calls: Schema.optionalKey(
          Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String, arguments: Schema.String }) }))
        )
      }),
      finish_reason: Schema.String
    })
  ),
  usage: Schema.Unknown
})

const completionOf = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.flatMap(response.json, Schema.decodeUnknownEffect(Completion))

const contentOf = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(completionOf(response), ({ choices }) => choices[0]?.message.content)

const start = Effect.forkChild({ startImmediately: true })

describe("provider double", () => {
  it.effect(
    "neither counts nor keeps a request to another path, which is meant for a process that had its port before",
    () =>
      Effect.gen(function* () {
        const provider = yield* double.makeProvider
        const client = yield* HttpClient.HttpClient
        const { status } = yield* client.get(provider.endpoint.replace(/\/v1$/u, "/metrics"))
        assert.strictEqual(status, 404)
        assert.deepStrictEqual([yield* provider.requests.all, yield* provider.takeRefusals], [[], []])
      }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("gives the scripted replies in order, then decides, and keeps the requests", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(double.answer("one"), double.answer("two"))
      const texts = [yield* contentOf(yield* post(provider)), yield* contentOf(yield* post(provider))]
      assert.strictEqual((yield* post(provider)).status, 500)
      yield* provider.otherwise((_, index) => double.answer(`number ${index}`))
      texts.push(yield* contentOf(yield* post(provider, { ...CALL, model: "other" })))
      assert.deepStrictEqual(texts, ["one", "two", "number 3"])
      const requests = yield* provider.requests.all
      assert.strictEqual(requests.length, 4)
      assert.deepStrictEqual(requests[3]?.body, { ...CALL, model: "other" })
      assert.strictEqual(requests[3]?.path, "/v1/chat/completions")
      assert.include(requests[3]?.headers["content-type"], "application/json")
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("wakes who waits for a request", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.otherwise(() => double.answer("ok"))
      const second = yield* start(provider.requests.at(1))
      const late = yield* start(provider.requests.first(({ body }) => JSON.stringify(body) === JSON.stringify(CALL), 1))
      yield* post(provider)
      yield* post(provider)
      assert.deepStrictEqual((yield* Fiber.join(second)).body, CALL)
      assert.strictEqual(yield* Fiber.join(late), (yield* provider.requests.all)[1])
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("calls tools, with valid input and without, and ten thousand at once", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      const calls = [
        { name: "a", input: { x: 1 } },
        { name: "b", input: "{broken" }
      ]
      yield* provider.script(double.callTools(calls), double.manyToolCalls(10_000, "a"))
      const first = yield* completionOf(yield* post(provider))
      assert.deepStrictEqual(
        first.choices[0]?.message.tool_calls?.map((call) => call.function),
        [
          { name: "a", arguments: '{"x":1}' },
          { name: "b", arguments: "{broken" }
        ]
      )
      const many = yield* completionOf(yield* post(provider))
      assert.strictEqual(many.choices[0]?.message.tool_calls?.length, 10_000)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("fails with 429, with and without Retry-After in seconds and as a date, and with 5xx (R26)", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* TestClock.adjust("1 hour")
      yield* provider.script(
        double.rateLimited(),
        double.rateLimited({ seconds: 7 }),
        double.rateLimited({ date_in_seconds: 60 }),
        double.failing(503)
      )
      const seen: Array<readonly [number, string | undefined]> = []
      for (let index = 0; index < 4; index += 1) {
        const response = yield* post(provider)
        seen.push([response.status, response.headers["retry-after"]])
      }
      assert.deepStrictEqual(seen, [
        [429, undefined],
        [429, "7"],
        [429, "Thu, 01 Jan 1970 01:01:00 GMT"],
        [503, undefined]
      ])
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("hangs, answers late and drips by the clock of the test", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(
        double.hang,
        double.after("1 minute", double.answer("late")),
        double.dripping("slow", "1 second")
      )
      const hanging = yield* start(post(provider))
      yield* provider.requests.at(0)
      const late = yield* start(post(provider))
      yield* provider.requests.at(1)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* contentOf(yield* Fiber.join(late)), "late")
      assert.isUndefined(hanging.pollUnsafe())
      yield* Fiber.interrupt(hanging)
      const body = yield* start((yield* post(provider)).stream.pipe(Stream.decodeText(), Stream.mkString))
      yield* TestClock.adjust("1 minute")
      assert.include(yield* Fiber.join(body), '"slow"')
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("cuts the connection before and within a reply", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(double.cut(), double.cut('{"choices"'))
      const before = yield* Effect.flip(post(provider))
      assert.strictEqual(before.reason._tag, "TransportError")
      const response = yield* post(provider)
      yield* Effect.flip(response.text)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("sends what is malformed, too large, without end, redirected, filtered or wrongly counted", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.script(
        double.raw("{not json"),
        double.oversize(9 * 1024 * 1024),
        double.endless,
        double.redirect(`${provider.endpoint}/elsewhere`),
        double.contentFilter(),
        double.answer("x", { usage: { prompt_tokens: -1, completion_tokens: "many" } })
      )
      yield* Effect.flip((yield* post(provider)).json)
      assert.isAbove((yield* (yield* post(provider)).text).length, 9 * 1024 * 1024)
      const chunks = yield* (yield* post(provider)).stream.pipe(Stream.take(50), Stream.runCount)
      assert.strictEqual(chunks, 50)
      const redirected = yield* post(provider)
      assert.strictEqual(redirected.status, 307)
      assert.strictEqual(redirected.headers["location"], `${provider.endpoint}/elsewhere`)
      assert.strictEqual((yield* completionOf(yield* post(provider))).choices[0]?.finish_reason, "content_filter")
      const { usage } = yield* completionOf(yield* post(provider))
      assert.deepStrictEqual(usage, { prompt_tokens: -1, completion_tokens: "many" })
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("speaks as the offline model after a latency", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      yield* provider.otherwise((request) => double.offlineModel(request, "200 millis"))
      const reply = yield* start(post(provider))
      yield* provider.requests.at(0)
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(yield* contentOf(yield* Fiber.join(reply)), "hi")
      const refused = yield* start(post(provider, { ...CALL, tools: [BAD_TOOL] }))
      yield* provider.requests.at(1)
      assert.strictEqual((yield* Fiber.join(refused)).status, 400)
      assert.strictEqual((yield* provider.takeRefusals).length, 1)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("ends with its scope although a client is still waiting", () =>
    Effect.gen(function* () {
      const waiting = yield* Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* double.makeProvider
          yield* provider.script(double.hang)
          const fiber = yield* Effect.forkChild(Effect.flip(post(provider)), { startImmediately: true })
          yield* provider.requests.at(0)
          return fiber
        })
      )
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "TransportError")
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})
