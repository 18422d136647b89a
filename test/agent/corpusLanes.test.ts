/** Every recorded answer of a provider, given to edge and to a job: whatever it is, it is told, and what comes after it succeeds. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { OVERLOADED } from "#src/agent/model/modelRequest.ts"
import { atSize } from "../support/size.ts"
import { bytesOf, type Fixture, readCorpus } from "../support/corpus.ts"
import { agentWithModels, configWith } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import * as double from "../support/testing/Provider.ts"
import { ofType, quiet, spoken } from "../support/testing/TestAgent.ts"

const replyOf = (fixture: Fixture): double.Reply =>
  double.raw(bytesOf(fixture), fixture.response.status, fixture.response.headers["content-type"] ?? "application/json")

/** An agent whose model gives the recorded answer once, and says hello to everything after it. */
const talking = Effect.fnUntraced(function* (fixture: Fixture) {
  const { dialect } = fixture
  const provider = yield* double.makeProviderOf({ dialect })
  yield* provider.script(replyOf(fixture))
  yield* provider.otherwise(() => double.answer("hello"))
  const entry = { ...modelEntry(dialect), endpoint: provider.endpoint }
  const plane = yield* agentWithModels({ config: configWith(entry, { rate_limit_retry_ms: 100 }) })
  const say = Effect.fnUntraced(function* (text: string) {
    const before = spoken(plane.events).length
    yield* plane.say(text)
    yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
    return spoken(plane.events).at(-1)?.payload.text
  })
  return { provider, say }
})

/** The first request of a job is answered by the recorded answer, and everything else with hello. */
const working = Effect.fnUntraced(function* (fixture: Fixture) {
  const { dialect } = fixture
  const provider = yield* double.makeProviderOf({ dialect })
  yield* provider.script(
    double.callTools([{ name: "choir-core-spawn", input: { job_name: "work", task_spec: "look" } }])
  )
  let isAnswered = false
  yield* provider.aside(({ body }) => {
    if (isAnswered || !JSON.stringify(body).includes("You carry out one task")) return undefined
    isAnswered = true
    return replyOf(fixture)
  })
  yield* provider.otherwise(() => double.answer("hello"))
  const entry = { ...modelEntry(dialect), endpoint: provider.endpoint }
  const plane = yield* agentWithModels({ config: configWith(entry, { rate_limit_retry_ms: 100 }) })
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  return { plane, provider }
})

/** The double cannot check a recorded proof; it refuses it as a provider does one of another key. */
const PROOFS: ReadonlySet<string> = new Set([
  "reasoning comes back as it was sent, to the model that it is of",
  "thinking comes back as it was sent, to the model that it is of",
  "the first call of each step of the present turn comes back with its signature"
])

/** Overload is waited for, which test/agent/model/Llm.test.ts does by a clock of its own. */
const answers = readCorpus().filter(
  ({ expected: { event } }) => !("error" in event) || !OVERLOADED.has(event.error.status ?? 0)
)

describe("edge, after each answer of the corpus,", () => {
  it.live.each(answers.map((fixture) => [fixture.name, fixture] as const))("goes on after %s", ([, fixture]) =>
    Effect.gen(function* () {
      const { provider, say } = yield* talking(fixture)
      assert.isNotEmpty(yield* say("one"))
      assert.strictEqual(yield* say("two"), "hello")
      const refusals = yield* provider.takeRefusals
      assert.deepStrictEqual(
        refusals.filter(({ rule }) => !PROOFS.has(rule)),
        []
      )
      assert.isAtMost(refusals.length, 1, "refused reasoning is not sent again")
    })
  )
})

/** One of so many is tried at each size. */
const EVERY = 4
const tried = atSize(
  answers.filter((_, index) => index % EVERY === 0),
  answers.filter((_, index) => index % EVERY !== 0)
)

describe("a job, after each answer of the corpus,", () => {
  it.live.each(tried.map((fixture) => [fixture.name, fixture] as const))(
    "takes its next step after %s, or ends as an error and can be resumed",
    ([, fixture]) =>
      Effect.gen(function* () {
        const { plane, provider } = yield* working(fixture)
        const [stopped] = ofType(plane.events, "CoreStopped")
        const { outcome, resumable, summary } = stopped!.payload
        // An overflow and a broken stream are asked for once more, so that most of these end well too.
        if ("error" in fixture.expected.event) assert.strictEqual(resumable !== undefined, outcome === "error", outcome)
        else assert.strictEqual(outcome, "completed", summary)
        yield* provider.takeRefusals
        yield* plane.say("two")
        yield* plane.until((events, state) => spoken(events).at(-1)?.payload.kind === "reply" && quiet(state))
        assert.strictEqual(spoken(plane.events).at(-1)?.payload.text, "hello")
      })
  )
})
