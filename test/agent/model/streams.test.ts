/** Answers that are written while they are heard: what may be shown of them, and how they fail. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, type Duration, Effect, Fiber, Logger, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { MODEL_TOTAL_MS_MAX, type Spoken, type Unanswered } from "#src/agent/model/Llm.ts"
import { MODEL_IDLE_MS_MAX } from "#src/agent/model/answerSilence.ts"
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

/** A body whose parts come apart, each after a pause. */
const paused = (pause: Duration.Input, contentType: string, ...parts: ReadonlyArray<string>): double.Reply =>
  Effect.sync(() => {
    const body = Stream.fromIterable(parts).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((part, index) => Effect.delay(Effect.succeed(part), index === 0 ? 0 : pause))
    )
    return HttpServerResponse.stream(Stream.encodeText(body), { contentType })
  })

/** Lets the clock go until a fiber has ended. */
const ended = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function* () {
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust(MODEL_TOTAL_MS_MAX / 100)
    }
    return yield* Fiber.join(fiber)
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

  it.effect("is heard without thoughts and calls in its text, and takes back what only their end shows", () =>
    Effect.gen(function* () {
      const call = [..."Yes. <tool_".split(""), 'call>\n{"name":"a"}\n</tool_call>']
      for (const [texts, shown] of [
        ["<Thinking kind='x'>the user is angry</Thinking>\n\nHello.".split(""), "Hello."],
        [["Let me see. <", "|chan", "nel>thought\nthe user is angry<chan", "nel|>Hello."], "Let me see. Hello."],
        [call, "Yes. "]
      ] as const) {
        const { heard } = yield* hearing(pieces(...texts))
        assert.strictEqual(wordsOf(heard), shown)
        assert.lengthOf(
          heard.filter(({ type }) => type === "begin"),
          1
        )
      }
      const { completion, heard } = yield* hearing(pieces("the user is ", "angry</thi", "nk>\n", "Hello."))
      assert.strictEqual(completion.text, "Hello.")
      const last = heard.findLastIndex(({ type }) => type === "begin")
      assert.strictEqual(wordsOf(heard.slice(last)), "Hello.")
      assert.isAbove(last, 0)
    })
  )

  it.effect("may be silent for minutes before its first word and while it thinks, but not for longer than a call", () =>
    Effect.gen(function* () {
      const delta = (part: object) => sse([{ choices: [{ index: 0, delta: part, finish_reason: null }] }])
      const [role, thought, word] = [{ role: "assistant" }, { reasoning_content: "hm" }, { content: "Found." }].map(
        delta
      )
      const end = sse([{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"])
      const parts = [role ?? "", thought ?? "", `${word}${end}`]
      const whole = JSON.stringify({ choices: [{ message: { content: "Found." }, finish_reason: "stop" }] })
      const item = (type: string, part: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...part })}\n\n`
      const message = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Found." }] }
      const responses = [
        `${item("response.output_text.delta", { delta: "Fo" })}${item("response.output_item.added", { item: { type: "reasoning" } })}`,
        item("response.completed", { response: { status: "completed", output: [message] } })
      ]
      const pause_ms = MODEL_IDLE_MS_MAX * 1.5
      for (const [reply, options, more] of [
        [paused(pause_ms, "text/event-stream", ...parts), {}, {}],
        [
          paused(pause_ms, "text/event-stream", ...responses),
          { dialect: "responses", key: KEY },
          { api: "responses", model: "gpt-5.6" }
        ],
        [paused(pause_ms, "application/json", "\n", " \n", whole), {}, {}]
      ] as const) {
        const { completion } = yield* ended(yield* start(hearing(reply, options, more)))
        assert.deepStrictEqual([completion.text, completion.error], ["Found.", undefined])
        assert.isAtLeast(completion.latency_ms, pause_ms)
      }
      const never = paused(MODEL_TOTAL_MS_MAX, "text/event-stream", ...parts)
      const { completion } = yield* ended(yield* start(hearing(never)))
      assert.strictEqual(completion.error?.message, 'the model "small": no complete answer within 10 minutes')
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.effect("ends at once by an interrupt, also while the model thinks in silence", () =>
    Effect.gen(function* () {
      const thought = sse([{ choices: [{ index: 0, delta: { reasoning_content: "hm" }, finish_reason: null }] }])
      const thinking = yield* Deferred.make<void>()
      const provider = yield* double.makeProvider
      yield* provider.script(paused(MODEL_TOTAL_MS_MAX, "text/event-stream", thought, thought))
      const costs: Array<Unanswered> = []
      const asked = yield* start(
        asking(
          provider,
          {},
          {},
          [],
          undefined,
          (cost) => Effect.sync(() => costs.push(cost)),
          ({ type }) => (type === "thinking" ? Deferred.doneUnsafe(thinking, Effect.void) : false)
        )
      )
      yield* Deferred.await(thinking)
      yield* TestClock.adjust(MODEL_IDLE_MS_MAX * 2)
      yield* Fiber.interrupt(asked)
      assert.deepStrictEqual(
        costs.map(({ latency_ms }) => latency_ms),
        [MODEL_IDLE_MS_MAX * 2]
      )
    })
  )

  it.effect("is given up once nothing came for three minutes after a word", () =>
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
        ["timeout", 'the model "small": nothing arrived for 180 s']
      )
    })
  )
})
