/** The doubles of providers: how they count, how slow they are, and how they fail. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import { ANSWER, ask, at, post, textOf, wholeOf } from "./askedProvider.ts"
import * as double from "./testing/Provider.ts"

const start = Effect.forkChild({ startImmediately: true })

const LONG = "The files of this project, each with what it is for. ".repeat(200)

describe("a provider that counts", () => {
  it.effect("finds the longest prefix of an earlier prompt, from 1,024 tokens in steps of 128", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ counts: true })
      yield* provider.otherwise(() => double.answer("Fine, I looked."))
      const usages: Array<unknown> = []
      for (const text of [`${LONG}One.`, `${LONG}Two.`, "short", `Other. ${LONG}`, `${LONG}One.`])
        usages.push((yield* wholeOf(provider, "openai", ask("openai", text)))["usage"])
      const cached = usages.map((usage) => Number(at(usage, "prompt_tokens_details", "cached_tokens")))
      const inputs = usages.map((usage) => Number(at(usage, "prompt_tokens")))
      assert.deepStrictEqual([cached[0], cached[2], cached[3]], [0, 0, 0])
      assert.strictEqual((cached[1] ?? 1) % 128, 0)
      assert.isAbove(cached[1] ?? 0, (inputs[1] ?? 0) * 0.9)
      assert.isAbove(cached[4] ?? 0, (inputs[4] ?? 0) * 0.9)
      const summary = yield* provider.summary
      const total = inputs.reduce((sum, tokens) => sum + tokens, 0)
      assert.deepStrictEqual(
        [summary.calls, summary.refusals, summary.input, summary.smallest_share, summary.largest_prompt],
        [5, 0, total, 0, Math.max(...inputs)]
      )
      assert.strictEqual(summary.output, 5 * Number(at(usages[0], "completion_tokens")))
      assert.approximately(summary.prefix_share, ((cached[1] ?? 0) + (cached[4] ?? 0)) / total, 1e-9)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("caches up to the breakpoints where a client has to set them", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect: "anthropic", counts: true })
      yield* provider.otherwise(() => double.answer("Fine."))
      const marked = (text: string, isMarked: boolean): Keys => ({
        type: "text",
        text,
        ...(isMarked ? { cache_control: { type: "ephemeral" } } : {})
      })
      const usages: Array<unknown> = []
      for (const [isMarked, last] of [
        [false, "One."],
        [true, "One."],
        [true, "Two."],
        [false, "Three."]
      ] as const) {
        const messages = [{ role: "user", content: [marked(LONG, isMarked), marked(last, false)] }]
        usages.push((yield* wholeOf(provider, "anthropic", ask("anthropic", "", { messages })))["usage"])
      }
      const read = usages.map((usage) => at(usage, "cache_read_input_tokens"))
      const written = usages.map((usage) => at(usage, "cache_creation_input_tokens"))
      assert.deepStrictEqual([read[0], read[1], read[3], written[0], written[2], written[3]], [0, 0, 0, 0, 0, 0])
      assert.isAbove(Number(written[1]), 1024)
      assert.strictEqual(read[2], written[1])
      const summary = yield* provider.summary
      assert.strictEqual(
        summary.input,
        usages.reduce<number>(
          (sum, usage) =>
            sum +
            Number(at(usage, "input_tokens")) +
            Number(at(usage, "cache_read_input_tokens")) +
            Number(at(usage, "cache_creation_input_tokens")),
          0
        )
      )
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("spells usage as each server does", () =>
    Effect.gen(function* () {
      const found: Partial<Record<DialectName, unknown>> = {}
      for (const dialect of ["openai", "openrouter", "kimi", "deepseek", "gemini"] as const) {
        const provider = yield* double.makeProviderOf({ dialect })
        yield* provider.otherwise(() => double.say(ANSWER))
        found[dialect] = (yield* wholeOf(provider, dialect))["usage"]
      }
      assert.strictEqual(at(found.openai, "prompt_tokens_details", "cached_tokens"), 1536)
      assert.strictEqual(at(found.openai, "completion_tokens_details", "reasoning_tokens"), 20)
      assert.strictEqual(at(found.openrouter, "prompt_tokens_details", "cache_write_tokens"), 100)
      assert.approximately(Number(at(found.openrouter, "cost")), 0.0027528, 1e-9)
      assert.strictEqual(at(found.kimi, "cached_tokens"), 1536)
      assert.deepStrictEqual(
        [at(found.deepseek, "prompt_cache_hit_tokens"), at(found.deepseek, "prompt_cache_miss_tokens")],
        [1536, 464]
      )
      assert.deepStrictEqual([at(found.gemini, "completion_tokens"), at(found.gemini, "total_tokens")], [40, 2060])
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})

describe("a provider that is slow or fails", () => {
  it.effect("writes at its speed, by the clock of the test", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ tokens_per_second: 50 })
      yield* provider.otherwise(() => double.answer("one two three four five six seven eight nine ten"))
      const body = { ...ask("openai"), stream: true }
      const arrived: Array<string> = []
      const reading = yield* start(
        Effect.flatMap(post(provider, "openai", body), (response) =>
          response.stream.pipe(
            Stream.decodeText(),
            Stream.runForEach((piece) => Effect.sync(() => void arrived.push(piece)))
          )
        )
      )
      yield* provider.requests.at(0)
      yield* TestClock.adjust("100 millis")
      assert.notInclude(arrived.join(""), "DONE")
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(reading)
      assert.include(arrived.join(""), "[DONE]")
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("keeps a stream alive, cuts it, ends it with an error, and falls silent", () =>
    Effect.gen(function* () {
      for (const dialect of ["openai", "openrouter", "anthropic", "responses"] as const) {
        const provider = yield* double.makeProviderOf({ dialect })
        yield* provider.script(
          double.say(ANSWER, { comments: 2 }),
          double.say(ANSWER, { breaks: { after: 4, how: "error" } }),
          double.say(ANSWER, { breaks: { after: 4, how: "cut" } }),
          double.say(ANSWER, { breaks: { after: 4, how: "silence" } })
        )
        const kept = yield* textOf(provider, dialect)
        assert.match(kept, dialect === "anthropic" ? /^event: ping\n/u : /^: /u)
        const erred = yield* textOf(provider, dialect)
        assert.match(erred.trimEnd().split("\n").at(-1) ?? "", /^data: \{.*error/u)
        yield* Effect.flip(textOf(provider, dialect))
        const silent = yield* post(provider, dialect, { ...ask(dialect), stream: true })
        const some = yield* silent.stream.pipe(Stream.decodeText(), Stream.take(1), Stream.mkString)
        assert.include(some, "data: ")
      }
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("fails in the shape of its dialect, with every status", () =>
    Effect.gen(function* () {
      const statuses = [401, 402, 404, 429, 500, 502, 503, 529]
      for (const dialect of ["openai", "anthropic", "openrouter", "gemini", "mistral"] as const) {
        const provider = yield* double.makeProviderOf({ dialect })
        yield* provider.script(...statuses.map((status) => double.failing(status, "not today")))
        for (const status of statuses) {
          const response = yield* post(provider, dialect, ask(dialect))
          assert.strictEqual(response.status, status)
          const body = yield* response.json
          const error = at(body, "error") ?? at(body, 0, "error") ?? body
          assert.strictEqual(at(error, "message"), "not today")
        }
      }
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("dies with its scope where a refusal was not taken", () =>
    Effect.gen(function* () {
      const bad = Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* double.makeProviderOf({ dialect: "anthropic" })
          const unlimited = ask("anthropic", "Look.", { max_tokens: undefined })
          assert.strictEqual((yield* post(provider, "anthropic", unlimited)).status, 400)
        })
      )
      const error = yield* Effect.flip(Effect.sandbox(bad))
      assert.include(String(error), "max_tokens: Field required")
      assert.isTrue(
        Schema.is(double.RefusedRequests)(
          error.reasons.flatMap((reason) => ("defect" in reason ? [reason.defect] : []))[0]
        )
      )
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})
