/** Answers that are written while they are heard: what may be shown of them, and how they fail. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import type { Spoken } from "#src/agent/model/Llm.ts"
import { MODEL_IDLE_MS_MAX } from "#src/agent/model/modelRequest.ts"
import { asking, KEY } from "../../support/askedModel.ts"
import { sse } from "../../support/askedCodec.ts"
import * as double from "../../support/testing/Provider.ts"

const start = Effect.forkChild({ startImmediately: true })

/** A stream of chat completions with these pieces of text. */
const pieces = (...texts: ReadonlyArray<string>): double.Reply =>
  Effect.sync(() => {
    const events = [
      ...texts.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      "[DONE]"
    ]
    return HttpServerResponse.text(sse(events), { contentType: "text/event-stream" })
  })

const hearing = Effect.fnUntraced(function* (reply: double.Reply, options: double.ProviderOptions = {}, more = {}) {
  const provider = yield* double.makeProviderOf(options)
  yield* provider.script(reply)
  const heard: Array<Spoken> = []
  const { completion } = yield* asking(provider, more, {}, [], undefined, undefined, (step) => heard.push(step))
  return { completion, heard, provider }
})

const wordsOf = (heard: ReadonlyArray<Spoken>) => heard.map((step) => (step.type === "text" ? step.text : "")).join("")

describe("an answer that is streamed", () => {
  for (const [dialect, api] of [
    ["openrouter", "chat"],
    ["responses", "responses"],
    ["anthropic", "messages"]
  ] as const)
    it.effect(`is heard as it is written by ${dialect}, and committed whole`, () =>
      Effect.gen(function* () {
        const text = "Four words are here."
        const model = {
          openrouter: "anthropic/claude-sonnet-4.5",
          responses: "gpt-5.6",
          anthropic: "claude-sonnet-4-5"
        }
        const reply = double.say({ text, reasoning: "a thought" }, { comments: 2 })
        const entry = { api, model: model[dialect], reasoning_effort: "low" }
        const { completion, heard } = yield* hearing(reply, { dialect, key: KEY }, entry)
        assert.deepStrictEqual([completion.text, completion.error], [text, undefined])
        assert.deepStrictEqual(heard[0], { type: "begin", model: "small" })
        assert.isTrue(heard.some(({ type }) => type === "thinking"))
        assert.strictEqual(wordsOf(heard), text)
        assert.isAbove(heard.filter(({ type }) => type === "text").length, 1)
        assert.notInclude(JSON.stringify(heard), "thought")
      })
    )

  it.effect("shows no secret, wherever its pieces end, and no thought in front of its words", () =>
    Effect.gen(function* () {
      const secret = yield* hearing(pieces("the key is ", KEY.slice(0, 5), KEY.slice(5), " and s", "k is none"))
      assert.strictEqual(wordsOf(secret.heard), "the key is <redacted> and sk is none")
      assert.strictEqual(secret.completion.text, "the key is <redacted> and sk is none")
      const thought = yield* hearing(pieces(" <th", "ink>a <b> secret</thi", "nk>\n", "\nFo", "ur."))
      assert.deepStrictEqual([wordsOf(thought.heard), thought.completion.text], ["Four.", "Four."])
    })
  )

  it.effect("is a failed call that is not repeated where it breaks off, ends early or brings an error", () =>
    Effect.gen(function* () {
      for (const [how, kind] of [
        ["cut", "unreachable"],
        ["error", "http"]
      ] as const) {
        const reply = double.say({ text: "Some words are here." }, { breaks: { after: 3, how } })
        const { completion, provider } = yield* hearing(reply, {}, { price: { input: 1, output: 1 } })
        assert.deepStrictEqual([completion.error?.kind, completion.text], [kind, undefined], how)
        assert.strictEqual((yield* provider.requests.all).length, 1)
        // A cut may take with it what was on its way.
        if (how === "error") assert.isAbove(completion.usage.output_tokens, 0, "what came is on the bill")
      }
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("lets a fallback take over after an error in it, which begins again for those who hear", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProvider
      const broken = double.say({ text: "Some words are here." }, { breaks: { after: 3, how: "error" } })
      yield* provider.script(broken, double.answer("from the second"))
      const heard: Array<Spoken> = []
      const second = { provider: "p", model: "m", endpoint: provider.endpoint }
      const { completion } = yield* asking(
        provider,
        { fallback: ["second"] },
        { second },
        [],
        undefined,
        undefined,
        (step) => heard.push(step)
      )
      assert.strictEqual(completion.text, "from the second")
      const again = heard.findLastIndex(({ type }) => type === "begin")
      assert.isAbove(again, 0)
      assert.strictEqual(wordsOf(heard.slice(again)), "from the second")
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("is given up once nothing came for a minute", () =>
    Effect.gen(function* () {
      const reply = double.say({ text: "Some words are here." }, { breaks: { after: 3, how: "silence" } })
      const asked = yield* start(hearing(reply))
      while (asked.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust(MODEL_IDLE_MS_MAX / 100)
      }
      const { completion } = yield* Fiber.join(asked)
      assert.deepStrictEqual(
        [completion.error?.kind, completion.error?.message],
        ["timeout", 'the model "small": nothing arrived for 60 s']
      )
    })
  )
})
