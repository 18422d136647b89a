/** The recorded answers of providers: what the codecs make of each, whole or streamed, and what goes back with the next request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { HttpClientRequest, HttpClientResponse } from "effect/http"
import { DIALECTS, refusalOf } from "#demo/dialects/Dialect.ts"
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { statusProblem, statusWords } from "#src/agent/model/modelRequest.ts"
import { usageOf } from "#src/shared/model/usage.ts"
import { bodyOf, modelOf, stepOf, streamOf, wholeOf } from "../../support/askedCodec.ts"
import { type After, bytesOf, type Fixture, readCorpus } from "../../support/corpus.ts"

const CORPUS = readCorpus()

const keep = (text: string) => text

const answerOf = (fixture: Fixture) => {
  const { api } = DIALECTS[fixture.dialect]
  const bytes = bytesOf(fixture)
  return fixture.response.stream === undefined ? wholeOf(api, parseJson(bytes)) : streamOf(api, bytes, 5).answer
}

/** Kinds of tokens as events have them; those that are none are absent. */
const usageIn = ({ cache_read_tokens, cache_write_tokens, reasoning_tokens, ...usage }: Keys) => ({
  ...usage,
  ...(Number(cache_read_tokens ?? 0) === 0 ? {} : { cache_read: cache_read_tokens }),
  ...(Number(cache_write_tokens ?? 0) === 0 ? {} : { cache_write: cache_write_tokens }),
  ...(Number(reasoning_tokens ?? 0) === 0 ? {} : { reasoning: reasoning_tokens })
})

/** Ids are Choir's own, arguments are compared as what they say, and a content without parts may be a text. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      if (["cache_control", "call_id", "id", "status"].includes(key)) return []
      if (key === "arguments" && typeof inner === "string") return [[key, parseJson(inner)]]
      if (key === "type" && inner === "message") return []
      const [part] = Array.isArray(inner) ? inner : []
      const isText = key === "content" && Array.isArray(inner) && inner.length === 1 && isObject(part) && "text" in part
      return [[key, isText ? part["text"] : plain(inner)]]
    })
  )
}

const REASONING = new Set(["reasoning", "reasoning_content", "reasoning_details", "extra_content"])
const isThought = (value: unknown) =>
  isObject(value) && ["reasoning", "redacted_thinking", "thinking"].includes(String(value["type"]))

/** A final answer's reasoning does not come back: its text alone is what a conversation is made of. */
const withoutReasoning = (next: ReadonlyArray<Keys>): ReadonlyArray<Keys> =>
  next.flatMap((message): ReadonlyArray<Keys> => {
    if (isThought(message)) return []
    const { content } = message
    const said = Object.fromEntries(Object.entries(message).filter(([key]) => !REASONING.has(key)))
    return [Array.isArray(content) ? { ...said, content: content.filter((part) => !isThought(part)) } : said]
  })

describe("a codec", () => {
  const answers = CORPUS.filter(({ response }) => response.status === 200)
  it.each(answers.map((fixture) => [fixture.name, fixture] as const))("reads %s", (_, fixture) => {
    const { event } = fixture.expected
    const read = answerOf(fixture)
    if ("error" in event) {
      assert.isTrue(Result.isFailure(read))
      if (!Result.isFailure(read)) return
      assert.strictEqual(read.failure.kind, event.error.kind)
      assert.include(read.failure.message, event.says ?? "")
      return
    }
    const { content, finish_reason, tool_calls, usage } = Result.getOrThrow(read)
    const counted = usage === undefined ? {} : { usage: usageOf({}, 0, 0, usage) }
    const { usage: expected, ...said } = event
    assert.deepStrictEqual<unknown>(
      { ...(content === "" ? {} : { text: content }), tool_calls, finish_reason, ...counted },
      { ...said, ...(expected === undefined ? {} : { usage: usageIn(expected) }) }
    )
  })

  const continued = answers.filter(({ expected }) => !("error" in expected.event) && expected.comes_back.length > 0)
  it.each(continued.map((fixture) => [fixture.name, fixture] as const))(
    "sends back what belongs to %s",
    (_, fixture) => {
      const { api } = DIALECTS[fixture.dialect]
      const model = modelOf({ api, model: MODELS[fixture.dialect] ?? "a-model", cache: "off" })
      const answer = Result.getOrThrow(answerOf(fixture))
      const body = bodyOf(model, [{ role: "user", content: "Look." }, ...stepOf(model, answer)])
      const sent = (body["messages"] ?? body["input"]) as ReadonlyArray<Keys>
      const next = fixture.expected.comes_back
      const wanted = answer.reasoning === undefined ? withoutReasoning(next) : next
      assert.deepStrictEqual(plain(sent.slice(1, 1 + wanted.length)), plain(wanted))
    }
  )

  const failures = CORPUS.filter((fixture) => fixture.response.status !== 200)
  it.effect.each(failures.map((fixture) => [fixture.name, fixture] as const))("understands %s", ([, fixture]) =>
    Effect.gen(function* () {
      const { event } = fixture.expected
      assert.property(event, "error")
      if (!("error" in event)) return
      const { headers, status } = fixture.response
      const response = HttpClientResponse.fromWeb(
        HttpClientRequest.post("https://provider.example/v1/chat/completions"),
        new Response(bytesOf(fixture), { status, headers })
      )
      // A 400 is an answer of its own, since it may name a parameter to leave out.
      const { message, ...error } =
        status === 400 ? statusWords(status, bytesOf(fixture)) : yield* statusProblem(response, keep)
      assert.deepStrictEqual(error, event.error)
      assert.include(message, event.says ?? "")
    })
  )
})

const PARAMETERS = { type: "object", properties: {}, required: [], additionalProperties: false }
const MODELS: Readonly<Record<string, string>> = { openrouter: "anthropic/claude-sonnet-4.5", gemini: "gemini-3-pro" }
/** A recorded proof is not one that the double wrote. */
const PROOFS: ReadonlySet<string> = new Set([
  "reasoning comes back as it was sent, to the model that it is of",
  "thinking comes back as it was sent, to the model that it is of",
  "the first call of each step of the present turn comes back with its signature"
])

/** The calls in what comes back, each with the message that answers it. */
const nextRequest = ({ dialect, expected }: Fixture): Keys => {
  const next = expected.comes_back
  const flat = next.flatMap((message) =>
    Array.isArray(message["content"]) ? [message, ...(message["content"] as ReadonlyArray<Keys>)] : [message]
  )
  const model = MODELS[dialect] ?? "a-model"
  const tools = ["look"].map((name) => ({ name, description: "Looks" }))
  switch (DIALECTS[dialect].api) {
    case "chat": {
      const calls = next.flatMap((message) => (message["tool_calls"] ?? []) as ReadonlyArray<Keys>)
      const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "seen" }))
      const ending = results.length > 0 ? results : [{ role: "user", content: "Go on." }]
      return {
        model,
        tools: tools.map((tool) => ({ type: "function", function: { ...tool, parameters: PARAMETERS } })),
        messages: [{ role: "system", content: "You help." }, { role: "user", content: "Look." }, ...next, ...ending]
      }
    }
    case "messages": {
      const results = flat
        .filter(({ type }) => type === "tool_use")
        .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "seen" }))
      const user = { role: "user", content: "Look." }
      return {
        model,
        max_tokens: 1000,
        tools: tools.map((tool) => ({ ...tool, input_schema: PARAMETERS })),
        messages:
          next.length === 0
            ? [user]
            : [user, ...next, { role: "user", content: results.length > 0 ? results : "Go on." }]
      }
    }
    case "responses": {
      const results = next
        .filter(({ type }) => type === "function_call")
        .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "seen" }))
      return {
        model,
        store: false,
        tools: tools.map((tool) => ({ type: "function", ...tool, parameters: PARAMETERS })),
        input: [{ role: "user", content: "Look." }, ...next, ...results]
      }
    }
  }
}

const OVERLOADED: ReadonlySet<number | undefined> = new Set([503, 529])

/** What edge may ask for after an event. */
const afterOf = (event: Fixture["expected"]["event"]): ReadonlyArray<After> => {
  if ("error" in event) {
    const { kind, status } = event.error
    if ("overflow" in event) return ["compaction"]
    // An error within a stream is asked for once more where the provider says that it is overloaded.
    return kind === "rate_limited" || OVERLOADED.has(status) ? ["again"] : ["again", "end"]
  }
  if (event.tool_calls.length > 0) return ["results"]
  return event.text === undefined || event.finish_reason === "length" ? ["correction"] : ["end"]
}

describe("the corpus", () => {
  it.each(CORPUS.map((fixture) => [fixture.name, fixture] as const))(
    "sends back of %s only what its provider takes",
    (_, fixture) => {
      const body = nextRequest(fixture)
      const asked = { headers: { "anthropic-version": "2023-06-01" }, bytes: 1, body }
      const traits = { context_window: 128_000, refuses: [], extensions: [], count: () => 0 }
      const { rules, ...dialect } = DIALECTS[fixture.dialect]
      const checked = { ...dialect, rules: rules.filter(({ name }) => !PROOFS.has(name)) }
      assert.isUndefined(refusalOf(checked, asked, traits)?.message)
    }
  )

  it.each(CORPUS.map((fixture) => [fixture.name, fixture] as const))(
    "has the request after %s, of a kind that its event asks for",
    (_, { expected: { event, next } }) => {
      assert.include(afterOf(event), next.after)
    }
  )

  it("has every kind of answer in every API", () => {
    const names = CORPUS.map(({ name }) => name)
    for (const kind of [
      "text",
      "empty",
      "length-in-text",
      "length-in-arguments",
      "length-in-thinking",
      "refusal",
      "overflow",
      "error-in-stream"
    ])
      for (const api of ["openai", "anthropic", "responses"])
        assert.isTrue(
          names.some((name) => name.startsWith(`${api}-${kind}`)),
          `${api}-${kind}`
        )
    for (const name of ["openai-parallel-calls", "anthropic-parallel-calls-stream", "responses-reasoning-and-calls"])
      assert.include(names, name)
    for (const name of ["openai-content-filter", "responses-content-filter"]) assert.include(names, name)
    const overflows = CORPUS.filter(({ expected }) => "overflow" in expected.event)
    assert.isAtLeast(new Set(overflows.map(({ dialect }) => dialect)).size, 6)
    const waits = CORPUS.flatMap(({ response }) =>
      [429, 503, 529].includes(response.status)
        ? [`${response.status} ${response.headers["retry-after"] === undefined}`]
        : []
    )
    assert.deepStrictEqual([...new Set(waits)].toSorted(), [
      "429 false",
      "429 true",
      "503 false",
      "503 true",
      "529 false",
      "529 true"
    ])
  })

  it("has every spelling of usage, every form of reasoning, and comments that keep a stream alive", () => {
    const has = (part: string) => CORPUS.some((fixture) => bytesOf(fixture).includes(part))
    const spellings = [
      "prompt_tokens_details",
      "prompt_cache_hit_tokens",
      "cached_tokens",
      "cache_read_input_tokens",
      "input_tokens_details"
    ]
    const forms = ["reasoning_content", "reasoning_details", "thought_signature", "encrypted_content", '"thinking"']
    for (const part of [...spellings, ...forms]) assert.isTrue(has(part), part)
    const comments = CORPUS.flatMap(({ response: { stream = [] } }) => stream.filter((block) => block.startsWith(":")))
    assert.isNotEmpty(comments)
  })
})
