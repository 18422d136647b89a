/** What is made of answers that public reports are about: each file of `test/corpus/wire`, through the client of models on a real socket. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Completion, Spoken } from "#src/agent/model/Llm.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { asking } from "../../support/askedModel.ts"
import { serveParts, type WireCase, wireCases } from "../../support/wireCases.ts"

const text = { type: "string" }
const toolOf = (name: string, properties: object, required: ReadonlyArray<string>): Tool => ({
  name,
  description: name,
  parameters: { type: "object", properties, required, additionalProperties: false }
})
const TOOLS: ReadonlyArray<Tool> = [
  toolOf(
    "choir-fs-write",
    { path: text, mode: { enum: ["overwrite", "append"] }, content: text, line: { type: "integer" } },
    ["path", "content"]
  ),
  toolOf("choir-fs-read", { path: text }, ["path"]),
  toolOf("choir-fs-find", { glob: text, path: text }, ["glob"]),
  toolOf("choir-fs-search", { pattern: text, context: { type: "integer" }, ignore_case: { type: "boolean" } }, [
    "pattern"
  ]),
  toolOf("choir-fs-send", { paths: { type: "array", items: text } }, ["paths"]),
  toolOf("choir-core-list", {}, [])
]

interface Expected {
  readonly text?: string | RegExp
  readonly calls?: Completion["tool_calls"]
  readonly error?: readonly [kind: string, says: RegExp]
  /** Announced waits in milliseconds. */
  readonly waits?: ReadonlyArray<number>
  /** Requests; one where absent. */
  readonly asked?: number
  /** Words of thoughts, or of a call, that nobody may hear while the answer comes. */
  readonly unheard?: RegExp
}

const written = (content: string) => [
  { name: "choir-fs-write", input: { path: "out.txt", mode: "overwrite", content } }
]
const BROKEN = ["unreachable", /broke off/u] as const

const EXPECTED: Readonly<Record<string, Expected>> = {
  "chat-brace-with-name": { calls: written("brace") },
  "chat-call-in-text-dsml": { text: /^<｜DSML｜tool_calls>/u, unheard: /DSML|invoke|a\.txt/u },
  "chat-call-in-text-dsml-split": { text: /^hello\n<｜｜DSML｜｜tool_calls>/u, unheard: /DS|invoke/u },
  "chat-call-in-text-internlm": { text: /^Sure, let me check\./u, unheard: /action|plugin|choir/u },
  "chat-call-in-text-unclosed": { text: /^I write it now\./u, unheard: /tool_call|function|out\.txt/u },
  "chat-call-with-stop": { calls: written("with stop") },
  "chat-custom-beside": { calls: written("custom beside") },
  "chat-error-in-choice": { error: ["rate_limited", /answered 429: Provider is busy/u], waits: [1000], asked: 2 },
  "chat-index-collides": {
    calls: [
      { name: "choir-fs-find", input: { glob: "a" } },
      { name: "choir-fs-read", input: { path: "b" } }
    ]
  },
  "chat-mm-think": { text: "Hello!", unheard: /angry|think/u },
  "chat-name-camel": { calls: written("camel") },
  "chat-name-index": { calls: written("index") },
  "chat-name-slash": { calls: written("slash") },
  "chat-parallel-wrapper": {
    calls: [
      { name: "choir-fs-find", input: { glob: "a" } },
      { name: "choir-fs-read", input: { path: "b" } }
    ]
  },
  "chat-special-tokens": { text: "Hello!", unheard: /begin|end|｜/u },
  "chat-think-in-code": { text: "Use `<think>a longer draft</think>` as the example." },
  "messages-delta-without-usage": { text: "no usage" },
  "messages-two-deltas": { calls: written("two deltas") },
  "responses-arguments-done-only": { calls: written("done only") },
  "responses-done-items-alone": { calls: written("items alone") },
  "responses-no-item-done": { calls: written("never done") },
  "responses-rate-limit-empty": { text: "after the wait", waits: [1000], asked: 2 },
  "chat-00-plain": { text: "hello" },
  "chat-204": { error: ["malformed", /the answer is empty/u] },
  "chat-429-date": { error: ["rate_limited", /slow down/u], waits: [0], asked: 2 },
  "chat-429-ms": { error: ["rate_limited", /slow down/u], waits: [100], asked: 2 },
  "chat-429-quota": {
    error: ["http", /quota of the model's account .* waiting does not bring it back: .*exceeded your current quota/u]
  },
  "chat-arguments-before-name": { calls: written("late name") },
  "chat-arguments-fenced": {
    calls: [
      {
        name: "choir-fs-write",
        input: '```json\n{"path":"out.txt","mode":"overwrite","content":"fenced"}\n```'
      }
    ]
  },
  "chat-arguments-missing": { text: "I look at the jobs.", calls: [{ name: "choir-core-list", input: {} }] },
  "chat-arguments-object": { calls: written("object") },
  "chat-arguments-object-whole": { calls: written("object") },
  "chat-arguments-twice-encoded": { calls: written("twice encoded") },
  "chat-call-in-text-qwen": {
    text: '<tool_call>\n{"name": "choir-fs-write", "arguments": {"path":"out.txt","mode":"overwrite","content":"xml"}}\n</tool_call>',
    unheard: /tool_call|choir-fs-write/u
  },
  "chat-content-in-message": { text: "in message" },
  "chat-done-without-finish": { text: "whole answer" },
  "chat-empty-200": { error: ["malformed", /the answer is empty/u] },
  "chat-empty-finish-call-cut": { error: ["unreachable", /broke off/u] },
  "chat-empty-finish-cut": { error: ["unreachable", /broke off/u] },
  "chat-empty-finish-eof": { error: BROKEN },
  "chat-empty-finish-eof-call": { error: BROKEN },
  "chat-error-detail": { error: ["http", /answered 400: str type expected/u] },
  "chat-error-event": { error: ["http", /529: upstream overloaded, try later/u], waits: [5000], asked: 2 },
  "chat-error-html": { error: ["http", /answered 502, a page of cloudflare$/u] },
  "chat-error-text": { error: ["http", /model runner has unexpectedly stopped/u] },
  "chat-error-text-whole": { error: ["http", /requires more system memory/u] },
  "chat-function-call-done": { calls: written("old done") },
  "chat-function-call-old": { calls: written("old") },
  "chat-function-null": {
    calls: [
      { name: "choir-fs-read", input: { path: "b" } },
      { name: "", input: {} }
    ]
  },
  "chat-gemma-channel": { text: "Hello!", unheard: /angry|thought/u },
  "chat-harmony-name": { calls: written("harmony") },
  "chat-index-odd": {
    calls: [
      { name: "choir-fs-write", input: { path: "out.txt", mode: "overwrite", content: "first" } },
      { name: "choir-fs-read", input: { path: "out.txt" } }
    ]
  },
  "chat-index-text": { calls: written("text index") },
  "chat-large-arguments": {
    calls: [
      {
        name: "choir-fs-write",
        input: {},
        refused: "its arguments have 75250 bytes, and 65536 are the limit. Nothing was run; write in smaller parts"
      }
    ]
  },
  "chat-list-as-text": { calls: [{ name: "choir-fs-send", input: { paths: ["a.txt"] } }] },
  "chat-many-calls": {
    calls: Array.from({ length: 40 }, (_, index) => ({
      name: "choir-fs-find",
      input: { glob: `*${index}` },
      ...(index < 32
        ? {}
        : {
            refused:
              "your answer has more than 32 calls, and only the first 32 were run; make this one again in your next answer"
          })
    }))
  },
  "chat-name-functions": { calls: written("functions") },
  "chat-number-as-text": {
    calls: [{ name: "choir-fs-search", input: { pattern: "x", context: 2, ignore_case: true } }]
  },
  "chat-optional-null": { calls: [{ name: "choir-fs-find", input: { glob: "*" } }] },
  "chat-sse-forms": { text: "odd frames" },
  "chat-surrogate-lone": {
    text: "x\ud83dy\0z",
    calls: [{ name: "choir-fs-write", input: { path: "out.txt", mode: "overwrite", content: "q\ud83dr\0s" } }]
  },
  "chat-surrogate-split": { text: "a😀b" },
  "chat-think-end-inline": { text: "Hello!" },
  "chat-think-late": { text: "Let me see. Hello!", unheard: /angry|think/u },
  "chat-thought-tag": { text: "Hello!", unheard: /angry|thought/u },
  "chat-tool-calls-object": { text: "no calls" },
  "chat-tool-calls-object-whole": { text: "no calls" },
  "chat-two-finishes": { text: "first second" },
  "chat-type-missing": { text: "typed as text" },
  "chat-usage-odd": { text: "counted" },
  "messages-content-text": { text: "just a text" },
  "messages-input-in-start": { calls: written("from start") },
  "messages-input-text": { calls: written("input text") },
  "messages-max-tokens-call": {
    calls: [{ name: "choir-fs-write", input: '{"path":"out.txt","mode":"overwrite","content":"half' }]
  },
  "messages-null-fields": { text: "nulls" },
  "messages-overloaded-stream": { error: ["http", /529: Overloaded/u], waits: [5000], asked: 2 },
  "messages-server-tool": { text: "found it" },
  "messages-unsigned-thinking": { calls: written("unsigned"), unheard: /hm/u },
  "responses-chat-chunks": {
    error: ["malformed", /answers as the API "chat" does, not as "responses": set the model's "api"/u]
  },
  "responses-content-null": { calls: written("null content") },
  "responses-custom-call": { calls: written("custom") },
  "responses-no-output": {},
  "responses-part-text": { text: "part text" },
  "responses-text-deltas-only": { text: "only deltas" }
}

/** What a person who watches has seen in the end: what was said since the last attempt began. */
const shownOf = (heard: ReadonlyArray<Spoken>): string => {
  const last = heard.findLastIndex(({ type }) => type === "begin")
  return heard
    .slice(last)
    .map((step) => (step.type === "text" ? step.text : ""))
    .join("")
}
const everShown = (heard: ReadonlyArray<Spoken>): string =>
  heard.map((step) => (step.type === "text" ? step.text : "")).join("")

const play = Effect.fnUntraced(function* ({ api, parts }: WireCase) {
  const server = yield* serveParts(parts)
  const heard: Array<Spoken> = []
  const provider = { endpoint: server.endpoint } as Parameters<typeof asking>[0]
  const announced = yield* Deferred.make<void>()
  const asked = asking(provider, { api }, {}, TOOLS, announced, undefined, (step) => heard.push(step))
  yield* Effect.forkScoped(Effect.andThen(Deferred.await(announced), TestClock.adjust("1 minute")))
  const { completion, waits } = yield* asked
  return { completion, waits, heard, asked: server.asked.length }
})

describe("an answer of a public report", () => {
  it("has an expectation for each file", () =>
    assert.sameMembers(
      Object.keys(EXPECTED),
      wireCases().map(({ name }) => name)
    ))

  for (const wire of wireCases())
    it.effect(`reads ${wire.name}`, () =>
      Effect.gen(function* () {
        const expected = EXPECTED[wire.name] ?? {}
        const { asked, completion, heard, waits } = yield* play(wire)
        const { error, text, tool_calls } = completion
        if (expected.error === undefined) assert.isUndefined(error)
        else {
          const [kind, says] = expected.error
          assert.strictEqual(error?.kind, kind, error?.message)
          assert.match(error?.message ?? "", says)
          assert.notMatch(error?.message ?? "", /[\n<]/u)
          assert.isBelow(error?.message.length ?? 0, 600)
        }
        if (expected.text instanceof RegExp) assert.match(text ?? "", expected.text)
        else assert.strictEqual(text, expected.text)
        assert.deepStrictEqual(tool_calls, expected.calls ?? [])
        assert.deepStrictEqual(waits, expected.waits ?? [])
        assert.strictEqual(asked, expected.asked ?? 1)
        if (expected.unheard !== undefined) assert.notMatch(everShown(heard), expected.unheard)
        if (error === undefined) assert.include(text ?? "", shownOf(heard).trim())
      })
    )
})
