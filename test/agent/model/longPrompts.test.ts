/** A provider whose model has a smaller context than config.json says: it refuses a prompt, and every message is answered all the same. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isOverflow } from "#src/agent/model/contextOverflow.ts"
import { statusWords } from "#src/agent/model/modelRequest.ts"
import { errorIn } from "#src/shared/model/Answer.ts"
import { agentWithModels, configWith } from "../../support/modelClient.ts"
import * as double from "../../support/testing/Provider.ts"
import { ofType, quiet, spoken } from "../../support/testing/TestAgent.ts"

const of = (error: object) => JSON.stringify({ error })

/** The bodies by which providers refuse a prompt that is too long. */
const REFUSALS: ReadonlyArray<readonly [provider: string, body: string]> = [
  [
    "Groq",
    of({
      message: "Please reduce the length of the messages or completion.",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded"
    })
  ],
  ["Cerebras", JSON.stringify({ message: "Bad request.", param: "messages", code: "context_length_exceeded" })],
  [
    "xAI",
    JSON.stringify({
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
    })
  ],
  [
    "Bedrock behind OpenRouter",
    of({
      code: 400,
      message: "Provider returned error",
      metadata: { raw: '{"message":"Input is too long for requested model."}' }
    })
  ],
  ["MiniMax", of({ type: "bad_request_error", message: "invalid params, context window exceeds limit (2013)" })],
  [
    "Together",
    of({
      message:
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
      param: "max_tokens"
    })
  ],
  [
    "LM Studio",
    of({
      message:
        "Trying to keep the first 4000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"
    })
  ],
  [
    "vLLM",
    of({
      message:
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7976 in the messages, 1024 in the completion via max_tokens). Please reduce the length of the messages or completion."
    })
  ]
]

/** Refusals of something else. */
const OTHERS: ReadonlyArray<string> = [
  of({ message: "Unsupported parameter: 'max_tokens' is not supported with this model.", param: "max_tokens" }),
  of({ message: "Invalid 'tools[0].function.name': string too long.", code: "string_above_max_length" }),
  of({ message: "The model `m` does not exist", code: "model_not_found" })
]

/** An agent whose provider takes bodies up to so many characters, and refuses longer ones with this. */
const withContextOf = Effect.fnUntraced(function* (chars: number, refusal: string) {
  const provider = yield* double.makeProviderOf({})
  yield* provider.otherwise(({ body }) =>
    JSON.stringify(body).length > chars ? double.raw(refusal, 400) : double.answer("noted")
  )
  const plane = yield* agentWithModels({
    config: configWith({ endpoint: provider.endpoint, context_window: 128_000 })
  })
  return { plane, provider }
})

describe("a prompt that is longer than the model's context", () => {
  it.each(REFUSALS)("is known by the words of %s", (_, body) => {
    assert.isTrue(isOverflow(statusWords(400, body)))
  })

  it("is known by its code in an answer that says success, and nothing else is taken for it", () => {
    const [groq = ""] = REFUSALS.map(([, body]) => body)
    assert.isTrue(isOverflow(errorIn(JSON.parse(groq))))
    for (const body of OTHERS) assert.isFalse(isOverflow(statusWords(400, body)), body)
  })

  it.live.each(REFUSALS.slice(0, 1))("is made shorter where %s refuses it, and every message is answered", ([, body]) =>
    Effect.gen(function* () {
      const { plane } = yield* withContextOf(40_000, body)
      for (let index = 0; index < 20; index++) {
        yield* plane.say(`${index}: ${"a longer text of a person. ".repeat(110)}`)
        yield* plane.until((events, state) => spoken(events).length === index + 1 && quiet(state))
      }
      const said = spoken(plane.events).map(({ payload }) => payload.text)
      assert.deepStrictEqual(new Set(said), new Set(["noted"]))
      assert.isAtLeast(ofType(plane.events, "CompactionCommitted").length, 1)
    })
  )

  it.live("keeps the limit of the answer under its name, though the refusal names it", () =>
    Effect.gen(function* () {
      const [, vllm = ""] = REFUSALS.find(([name]) => name === "vLLM") ?? []
      const { plane, provider } = yield* withContextOf(25_000, vllm)
      for (let index = 0; index < 10; index++) {
        yield* plane.say(`${index}: ${"a longer text of a person. ".repeat(110)}`)
        yield* plane.until((events, state) => spoken(events).length === index + 1 && quiet(state))
      }
      const asked = yield* provider.requests.all
      assert.isTrue(asked.some(({ body }) => JSON.stringify(body).length > 25_000))
      assert.isTrue(asked.every(({ body }) => "max_tokens" in (body as object)))
    })
  )
})
