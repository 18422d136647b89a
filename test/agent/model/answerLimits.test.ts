/** A provider that takes a smaller limit of the answer than the agent sends: the turn is answered, and the limit is sent once only. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agentWithModels, configWith } from "../../support/modelClient.ts"
import { modelEntry } from "../../support/modelNames.ts"
import * as double from "../../support/testing/Provider.ts"
import { ofType, quiet, spoken } from "../../support/testing/TestAgent.ts"

const limitOf = ({ body }: double.ProviderRequest): unknown => (body as Readonly<Record<string, unknown>>)["max_tokens"]

/** Two turns of an agent that sends 8,000: the replies, and the limits that it sent. */
const twoTurns = Effect.fnUntraced(function* (provider: double.Provider, entry: object = {}) {
  const config = configWith({ ...entry, endpoint: provider.endpoint, max_tokens: 8000 })
  const plane = yield* agentWithModels({ config })
  for (const [index, text] of ["one", "two"].entries()) {
    yield* plane.say(text)
    yield* plane.until((events, state) => spoken(events).length > index && quiet(state))
  }
  return {
    said: spoken(plane.events).map(({ payload }) => payload.text),
    compacted: ofType(plane.events, "CompactionCommitted").length,
    limits: (yield* provider.requests.all).map(limitOf)
  }
})

describe("an agent whose provider refuses the limit of its answer", () => {
  it.live.each(["openai", "anthropic"] as const)(
    "learns the limit that %s names, and answers the turn and the next one",
    (dialect) =>
      Effect.gen(function* () {
        const provider = yield* double.makeProviderOf({ dialect, answer_tokens_max: 4096 })
        yield* provider.otherwise(() => double.answer("hello"))
        const { compacted, limits, said } = yield* twoTurns(provider, modelEntry(dialect))
        assert.deepStrictEqual(said, ["hello", "hello"])
        assert.deepStrictEqual(limits, [8000, 4096, 4096])
        assert.strictEqual(compacted, 0)
        assert.deepStrictEqual(
          (yield* provider.takeRefusals).map(({ rule }) => rule),
          ["an answer's limit is no more than the model writes"]
        )
      })
  )

  it.live(
    "asks for a quarter of the context where a short prompt and the answer do not fit, and compacts nothing",
    () =>
      Effect.gen(function* () {
        const provider = yield* double.makeProviderOf({})
        yield* provider.otherwise((request) =>
          Number(limitOf(request)) > 7892
            ? double.raw(
                JSON.stringify({
                  object: "error",
                  message:
                    "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (300 in the messages, 8000 in the completion). Please reduce the length of the messages or completion."
                }),
                400
              )
            : double.answer("hello")
        )
        const { compacted, limits, said } = yield* twoTurns(provider)
        assert.deepStrictEqual(said, ["hello", "hello"])
        assert.deepStrictEqual(limits, [8000, 2048, 2048])
        assert.strictEqual(compacted, 0)
      })
  )
})
