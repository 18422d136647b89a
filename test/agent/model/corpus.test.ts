/** The recorded answers of providers: what the reader of chat completions makes of those that arrive whole, and what each asks of the next request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { HttpClientRequest, HttpClientResponse } from "effect/http"
import { DIALECTS, refusalOf } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import { interpret } from "#src/agent/model/chatCompletion.ts"
import { statusProblem, statusWords } from "#src/agent/model/modelRequest.ts"
import { bytesOf, type Fixture, readCorpus } from "../../support/corpus.ts"

const CORPUS = readCorpus()

/** Answers of chat completions that the reader does not know: a content in parts, and an error behind a status of success. */
const UNREAD: ReadonlySet<string> = new Set(["mistral-thinking", "openrouter-error-in-200"])
/** Names of one reason in other servers. */
const FINISH: Readonly<Record<string, string>> = { model_length: "length" }

const isRead = ({ dialect, name, response }: Fixture): boolean =>
  response.stream === undefined && DIALECTS[dialect].api === "chat" && !UNREAD.has(name)

const keep = (text: string) => text

describe("the reader of chat completions", () => {
  const answers = CORPUS.filter((fixture) => isRead(fixture) && fixture.response.status === 200)
  it.effect.each(answers.map((fixture) => [fixture.name, fixture] as const))("reads %s", ([, fixture]) =>
    Effect.gen(function* () {
      const { event } = fixture.expected
      const read = yield* Effect.result(interpret(bytesOf(fixture), keep))
      if ("error" in event) {
        assert.isTrue(Result.isFailure(read))
        if (!Result.isFailure(read)) return
        assert.strictEqual(read.failure.kind, event.error.kind)
        assert.include(read.failure.message, event.says ?? "")
        return
      }
      assert.isTrue(Result.isSuccess(read))
      if (!Result.isSuccess(read)) return
      const { content, finish_reason, tool_calls, usage } = read.success
      assert.deepStrictEqual(
        {
          ...(content === "" ? {} : { text: content }),
          tool_calls,
          finish_reason: FINISH[finish_reason] ?? finish_reason
        },
        {
          ...("text" in event ? { text: event.text } : {}),
          tool_calls: event.tool_calls,
          finish_reason: event.finish_reason
        }
      )
      assert.strictEqual(usage?.prompt_tokens, event.usage?.input_tokens)
    })
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
/** A recorded proof is none of the double's. */
const PROOFS: ReadonlySet<string> = new Set([
  "reasoning comes back as it was sent, to the model that it is of",
  "thinking comes back as it was sent, to the model that it is of",
  "the first call of each step of the present turn comes back with its signature"
])

/** The calls in what comes back, each with the message that answers it. */
const nextRequest = ({ dialect, expected }: Fixture): Keys => {
  const next = expected.next ?? []
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

describe("the corpus", () => {
  it.each(CORPUS.map((fixture) => [fixture.name, fixture] as const))(
    "has a next request for %s that is taken",
    (_, fixture) => {
      const body = nextRequest(fixture)
      const asked = { headers: { "anthropic-version": "2023-06-01" }, bytes: 1, body }
      const traits = { context_window: 128_000, refuses: [], extensions: [], count: () => 0 }
      const { rules, ...dialect } = DIALECTS[fixture.dialect]
      const checked = { ...dialect, rules: rules.filter(({ name }) => !PROOFS.has(name)) }
      assert.isUndefined(refusalOf(checked, asked, traits)?.message)
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
})
