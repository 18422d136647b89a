/** The doubles of providers: what they send in each dialect. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { type Keys, listOf } from "#demo/dialects/jsonKeys.ts"
import { signatureOf } from "#demo/dialects/signatures.ts"
import { ANSWER, ask, at, eventsIn, joined, post, textOf, wholeOf } from "./askedProvider.ts"
import { CHAT_DIALECTS, MODEL_NAMES } from "./modelNames.ts"
import type { Answer } from "./providers/Answer.ts"
import * as double from "./testing/Provider.ts"

describe("a provider in a dialect", () => {
  it.effect.each(CHAT_DIALECTS)("sends one answer whole and in pieces, as %s does", (dialect) =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect })
      yield* provider.otherwise(() => double.say(ANSWER))
      const message = at(yield* wholeOf(provider, dialect), "choices", 0, "message")
      const body = ask(dialect, "Look.", dialect === "mistral" ? {} : { stream_options: { include_usage: true } })
      const text = yield* textOf(provider, dialect, body)
      assert.match(text, /data: \[DONE\]\n\n$/u)
      const events = eventsIn(text)
      const delta = ["choices", 0, "delta"] as const
      assert.strictEqual(joined(events, ...delta, "content"), "I look around here.")
      const calls = events.flatMap((event) => listOf(at(event, ...delta, "tool_calls")))
      for (const index of [0, 1]) {
        const own = calls.filter((call, place) => (at(call, "index") ?? place) === index) as ReadonlyArray<Keys>
        assert.deepStrictEqual(
          [joined(own, "function", "name"), joined(own, "function", "arguments")],
          ["look", JSON.stringify(ANSWER.calls?.[index]?.input)]
        )
        assert.strictEqual(joined(own, "id").length, String(at(message, "tool_calls", index, "id")).length)
      }
      const reasons = events.map((event) => at(event, "choices", 0, "finish_reason"))
      assert.deepStrictEqual(
        reasons.filter((reason) => typeof reason === "string"),
        ["tool_calls"]
      )
      assert.strictEqual(at(events.at(-1), "usage", "prompt_tokens"), 2000)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("shows reasoning where the dialect has it, with the proof that its model wants back", () =>
    Effect.gen(function* () {
      const message = Effect.fnUntraced(function* (dialect: DialectName, more: Keys = {}) {
        const provider = yield* double.makeProviderOf({ dialect })
        yield* provider.otherwise(() => double.say(ANSWER))
        return at(yield* wholeOf(provider, dialect, ask(dialect, "Look.", more)), "choices", 0, "message")
      })
      assert.doesNotHaveAnyKeys(yield* message("openai"), ["reasoning", "reasoning_content"])
      assert.strictEqual(at(yield* message("kimi"), "reasoning_content"), ANSWER.reasoning)
      assert.isUndefined(at(yield* message("kimi", { thinking: { type: "disabled" } }), "reasoning_content"))
      assert.strictEqual(at(yield* message("qwen-template"), "reasoning_content"), ANSWER.reasoning)
      const [detail] = listOf(at(yield* message("openrouter"), "reasoning_details"))
      const model = MODEL_NAMES.openrouter
      assert.deepStrictEqual(detail, {
        type: "reasoning.text",
        text: ANSWER.reasoning,
        signature: signatureOf(model, ANSWER.reasoning ?? ""),
        format: "anthropic-claude-v1",
        index: 0
      })
      const calls = listOf(at(yield* message("gemini"), "tool_calls"))
      assert.deepStrictEqual(
        calls.map((call) => typeof at(call, "extra_content", "google", "thought_signature")),
        ["string", "undefined"]
      )
      assert.match(String(at(yield* message("mistral"), "tool_calls", 0, "id")), /^[a-zA-Z0-9]{9}$/u)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("sends blocks and their events as Anthropic does", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect: "anthropic" })
      yield* provider.otherwise(() => double.say(ANSWER))
      const whole = yield* wholeOf(provider, "anthropic")
      assert.deepStrictEqual(
        listOf(whole["content"]).map((block) => at(block, "type")),
        ["thinking", "text", "tool_use", "tool_use"]
      )
      assert.deepStrictEqual([whole["stop_reason"], at(whole, "usage", "input_tokens")], ["tool_use", 364])
      const text = yield* textOf(provider, "anthropic")
      const events = eventsIn(text)
      assert.deepStrictEqual(
        [...text.matchAll(/^event: (.+)$/gmu)].map(([, name]) => name),
        events.map(({ type }) => type)
      )
      assert.deepStrictEqual([events[0]?.["type"], events.at(-1)?.["type"]], ["message_start", "message_stop"])
      const of = (index: number) => events.filter((event) => event["index"] === index)
      assert.strictEqual(joined(of(0), "delta", "thinking"), ANSWER.reasoning)
      assert.strictEqual(joined(of(0), "delta", "signature"), at(whole, "content", 0, "signature"))
      assert.strictEqual(joined(of(1), "delta", "text"), ANSWER.text)
      assert.strictEqual(joined(of(2), "delta", "partial_json"), '{"at":"a place with a long name"}')
      assert.strictEqual(at(events.at(-2), "delta", "stop_reason"), "tool_use")
      assert.deepStrictEqual(
        [at(events[0], "message", "usage", "cache_read_input_tokens"), at(events.at(-2), "usage", "output_tokens")],
        [1536, 60]
      )
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("sends items and their events as OpenAI's Responses does, and takes them back", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect: "responses" })
      yield* provider.otherwise(() => double.say(ANSWER))
      const whole = yield* wholeOf(provider, "responses")
      const output = listOf(whole["output"])
      assert.deepStrictEqual(
        output.map((item) => at(item, "type")),
        ["reasoning", "message", "function_call", "function_call"]
      )
      assert.strictEqual(at(whole, "usage", "input_tokens_details", "cached_tokens"), 1536)
      const text = yield* textOf(provider, "responses")
      const events = eventsIn(text)
      assert.deepStrictEqual(
        events.map((event) => event["sequence_number"]),
        events.map((_, index) => index)
      )
      const of = (type: string) => events.filter((event) => event["type"] === type)
      assert.strictEqual(joined(of("response.output_text.delta"), "delta"), ANSWER.text)
      assert.strictEqual(joined(of("response.reasoning_summary_text.delta"), "delta"), ANSWER.reasoning)
      const completed = listOf(at(of("response.completed")[0], "response", "output"))
      assert.deepStrictEqual(
        of("response.output_item.done").map((event) => event["item"]),
        completed
      )
      const results = output
        .filter((item) => at(item, "type") === "function_call")
        .map((item) => ({ type: "function_call_output", call_id: at(item, "call_id"), output: "seen" }))
      const input = [{ role: "user", content: "Look." }, ...output, ...results]
      assert.strictEqual((yield* post(provider, "responses", ask("responses", "", { input }))).status, 200)
      const altered = [{ role: "user", content: "Look." }, ...output.slice(0, 2), output[3], results[0]]
      assert.strictEqual((yield* post(provider, "responses", ask("responses", "", { input: altered }))).status, 400)
      assert.deepStrictEqual(
        (yield* provider.takeRefusals).map(({ rule }) => rule),
        ["each call is answered once, and no result comes before its call"]
      )
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.effect("says how an answer ended in each API's words", () =>
    Effect.gen(function* () {
      const endings: ReadonlyArray<Answer> = [
        { text: "a" },
        { text: "a", finish: "length" },
        { text: "", finish: "filter" },
        { refusal: "I cannot help with that." }
      ]
      const found: Array<ReadonlyArray<unknown>> = []
      for (const dialect of ["openai", "anthropic", "responses"] as const) {
        const provider = yield* double.makeProviderOf({ dialect })
        yield* provider.script(...endings.map((ending) => double.say(ending)))
        const own: Array<unknown> = []
        for (const _ of endings) {
          const whole = yield* wholeOf(provider, dialect)
          own.push(
            at(whole, "choices", 0, "finish_reason") ??
              whole["stop_reason"] ??
              at(whole, "incomplete_details", "reason") ??
              whole["status"]
          )
        }
        found.push(own)
      }
      assert.deepStrictEqual(found, [
        ["stop", "length", "content_filter", "stop"],
        ["end_turn", "max_tokens", "refusal", "refusal"],
        ["completed", "max_output_tokens", "content_filter", "completed"]
      ])
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})
