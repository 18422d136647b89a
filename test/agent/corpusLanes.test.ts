/** Every recorded answer of a provider, given to edge and to a job: whatever it is, it is told, and what comes after it succeeds. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { isPassing } from "#src/shared/model/passing.ts"
import { atSize } from "../support/size.ts"
import { bytesOf, type Fixture, nextOf, readCorpus, recordNext } from "../support/corpus.ts"
import { agentWithModels, configWith } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import { makeSkippedSleeps } from "./skippedSleeps.ts"
import * as double from "../support/testing/Provider.ts"
import { ofType, quiet, spoken } from "../support/testing/TestAgent.ts"

const replyOf = (fixture: Fixture): double.Reply =>
  Effect.sync(() => {
    const { headers, status } = fixture.response
    return HttpServerResponse.text(bytesOf(fixture), { status, headers })
  })

/** What an agent waits for after a limit of which the provider does not say how long it lasts, and what a provider may be overloaded for. */
const LIMITED_MS = 7003
const OVERLOADED_MS = 5000
/** Heartbeats and the signs of life between them have lengths of their own, and no job is so near its end, so that nothing else sleeps as long as an agent waits for a provider. */
const BEATS = { heartbeat_interval_ms: 4999, crash_detection_threshold_ms: 14_997 }
const OVERLOADED: ReadonlySet<number | undefined> = new Set([503, 529])

/** How long an agent waits after the recorded answer before it asks once more. */
const waitsAfter = ({ expected: { event } }: Fixture): ReadonlyArray<number> => {
  if (!("error" in event)) return []
  const { kind, retry_after_ms, status } = event.error
  if (kind === "rate_limited") return [retry_after_ms ?? LIMITED_MS]
  // A provider that fails otherwise is asked again by the lane, after a pause that is as long.
  return OVERLOADED.has(status) || isPassing(event.error) ? [OVERLOADED_MS] : []
}

/** Runs a test of a recorded answer with a clock for its agent that skips the wait, which happens as often as it must. */
const waiting = <A, E, R>(fixture: Fixture, test: (clock: Clock.Clock) => Effect.Effect<A, E, R>) => {
  const waits = waitsAfter(fixture)
  const { clock, skipped } = makeSkippedSleeps(...waits)
  return Effect.andThen(
    test(clock),
    Effect.sync(() => assert.deepStrictEqual(skipped, waits, "the waits before the second question"))
  )
}

/** An agent whose model gives the recorded answer once, and says hello to everything after it. */
const talking = Effect.fnUntraced(function* (fixture: Fixture, clock: Clock.Clock) {
  const { dialect } = fixture
  const provider = yield* double.makeProviderOf({ dialect })
  yield* provider.script(replyOf(fixture))
  yield* provider.otherwise(() => double.answer("hello"))
  const entry = { ...modelEntry(dialect), endpoint: provider.endpoint }
  const config = configWith(entry, { rate_limit_retry_ms: LIMITED_MS, ...BEATS })
  const plane = yield* Effect.provideService(agentWithModels({ config }), Clock.Clock, clock)
  const say = Effect.fnUntraced(function* (text: string) {
    const before = spoken(plane.events).length
    yield* plane.say(text)
    yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
    return spoken(plane.events).at(-1)?.payload.text
  })
  return { provider, say }
})

/** The first request of a job is answered by the recorded answer, and everything else with hello. */
const working = Effect.fnUntraced(function* (fixture: Fixture, clock: Clock.Clock) {
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
  const config = configWith(entry, { rate_limit_retry_ms: LIMITED_MS, ...BEATS })
  const plane = yield* Effect.provideService(agentWithModels({ config }), Clock.Clock, clock)
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  return { plane, provider }
})

/** The rule by which the double refuses a recorded proof, which it cannot check, as a provider refuses one of another key. */
const PROOFS: Partial<Readonly<Record<DialectName, string>>> = {
  openrouter: "reasoning comes back as it was sent, to the model that it is of",
  responses: "reasoning comes back as it was sent, to the model that it is of",
  anthropic: "thinking comes back as it was sent, to the model that it is of",
  gemini: "the first call of each step of the present turn comes back with its signature"
}
const PROOF = /"(?:signature|encrypted_content|thought_signature)":/u

/** The refusals after an answer: the proof of its calls is refused once and not sent again; that of a text is not sent at all. */
const refusedAfter = ({ dialect, expected }: Fixture): ReadonlyArray<string> => {
  const rule = PROOFS[dialect]
  const calls = "error" in expected.event ? [] : expected.event.tool_calls
  return rule !== undefined && calls.length > 0 && PROOF.test(JSON.stringify(expected.comes_back)) ? [rule] : []
}

const answers = readCorpus()

describe("edge, after each answer of the corpus,", () => {
  it.live.each(answers.map((fixture) => [fixture.name, fixture] as const))(
    "goes on after %s, and its next request is the recorded one",
    ([, fixture]) =>
      waiting(
        fixture,
        Effect.fnUntraced(function* (clock) {
          const { provider, say } = yield* talking(fixture, clock)
          assert.isNotEmpty(yield* say("one"))
          assert.strictEqual(yield* say("two"), "hello")
          const [asked, following] = yield* provider.requests.all
          const next = nextOf(asked?.body, following?.body)
          if (process.env["CHOIR_GOLDEN"] === "write") recordNext(fixture.name, next)
          else assert.deepStrictEqual(next, fixture.expected.next)
          assert.deepStrictEqual(
            (yield* provider.takeRefusals).map(({ rule }) => rule),
            refusedAfter(fixture)
          )
        })
      )
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
      waiting(
        fixture,
        Effect.fnUntraced(function* (clock) {
          const { plane, provider } = yield* working(fixture, clock)
          const [stopped] = ofType(plane.events, "CoreStopped")
          const { outcome, resumable, summary } = stopped!.payload
          // An overflow and a broken stream are asked for once more, so that most of these end well too.
          if ("error" in fixture.expected.event)
            assert.strictEqual(resumable !== undefined, outcome === "error", outcome)
          else assert.strictEqual(outcome, "completed", summary)
          assert.deepStrictEqual(
            (yield* provider.takeRefusals).map(({ rule }) => rule),
            refusedAfter(fixture)
          )
          yield* plane.say("two")
          yield* plane.until((events, state) => spoken(events).at(-1)?.payload.kind === "reply" && quiet(state))
          assert.strictEqual(spoken(plane.events).at(-1)?.payload.text, "hello")
        })
      )
  )
})
