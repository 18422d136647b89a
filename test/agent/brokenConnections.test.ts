/** Jobs whose provider fails them, with strict doubles over sockets: fallbacks, and edge that resumes what ended by an error (D49). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type DialectName, DIALECTS } from "#demo/dialects/Dialect.ts"
import { isObject } from "#demo/dialects/jsonKeys.ts"
import { ResourceName } from "#schema/Ids.ts"
import { agentWithModels } from "../support/modelClient.ts"
import { MODEL_NAMES } from "../support/modelNames.ts"
import { seeded } from "../support/seeded.ts"
import { SIZE } from "../support/size.ts"
import * as double from "../support/testing/Provider.ts"
import { agentConfig, ofType, quiet, spoken, testTool } from "../support/testing/TestAgent.ts"

/** Steps of a job that works for hours. */
const STEPS = 200
/** One of so many answers breaks off. */
const BROKEN_EVERY = 100

const DIALECT_NAMES: ReadonlyArray<DialectName> = ["openai", "anthropic", "kimi", "deepseek"]

const spawn = (more: object) =>
  double.callTools([{ name: "choir-core-spawn", input: { job_name: "dig", task_spec: "dig a hole", ...more } }])

const times = (text: string, part: string): number => text.split(part).length - 1

const FAILED = String.raw`Job ended: {\"job_name\":\"dig\",\"outcome\":\"error\"`

/** Starts the job, resumes it after each error, and reports in words. It knows only its prompt. */
const edge = (text: string): double.Reply => {
  if (!text.includes("job dig was started")) return spawn({})
  return times(text, FAILED) > times(text, "job dig was resumed") ? spawn({ resume: true }) : double.answer("Fine.")
}

const isJob = (text: string): boolean => text.includes("You carry out one task")

const config = (endpoint: string, dialect: DialectName, fallback: boolean) => {
  const base = agentConfig({
    per_job_max_steps: STEPS + 50,
    per_job_max_tool_calls: STEPS + 50,
    max_tool_calls_per_session: 10 * STEPS,
    total_session_tokens: 1e9
  })
  const { api } = DIALECTS[dialect]
  const [model] = Object.values(base.models)
  const entry = { ...model!, api, endpoint, model: MODEL_NAMES[dialect], context_window: 128_000 }
  const small = { ...entry, reasoning_effort: "low" as const, fallback: fallback ? [ResourceName.make("again")] : [] }
  return { ...base, models: { small, ...(fallback ? { again: { ...small, fallback: [] } } : {}) } }
}

/** An agent with a provider: the words that its messages lead to, and what its one tool did. */
const setUp = Effect.fnUntraced(function* (
  dialect: DialectName,
  fallback: boolean,
  job: (text: string, body: unknown) => double.Reply
) {
  const did: Array<unknown> = []
  const look = testTool("mem.look", () =>
    Effect.sync(() => {
      did.push(did.length)
      return { status: "success", summary: `sand of layer ${did.length}` } as const
    })
  )
  const count = (text: string) => Math.ceil(text.length / 4)
  const provider = yield* double.makeProviderOf({ dialect, count })
  yield* provider.otherwise(({ body }) => {
    const text = JSON.stringify(body)
    return isJob(text) ? job(text, body) : edge(text)
  })
  const plane = yield* agentWithModels({ tools: [look], config: config(provider.endpoint, dialect, fallback) })
  yield* plane.say("go")
  yield* plane.until(
    (events, state) =>
      spoken(events).length > 1 && quiet(state) && ofType(events, "CoreStopped").length === spoken(events).length - 1
  )
  const outcomes = ofType(plane.events, "CoreStopped").map(({ payload }) => payload.outcome)
  return { did, outcomes, plane, requests: yield* provider.requests.all, refusals: yield* provider.takeRefusals }
})

const looks = (of: number) =>
  double.say({ calls: [{ name: "mem-look", input: { layer: of } }], reasoning: "Deeper lies more." })

describe("a job that ended by its provider's error", () => {
  for (const dialect of DIALECT_NAMES)
    it.live(`is resumed by edge from its log with ${dialect}, and does nothing twice`, () =>
      Effect.gen(function* () {
        let asked = 0
        const job = (text: string): double.Reply => {
          asked += 1
          // A key that was taken back: no wait brings it.
          if (asked === 3) return double.failing(401)
          if (asked <= 2 || asked === 4) return looks(asked)
          return double.answer(text.includes("sand of layer 3") ? "It is all sand." : "I forgot.")
        }
        const { did, outcomes, plane, refusals, requests } = yield* setUp(dialect, false, job)
        assert.deepStrictEqual(refusals, [])
        assert.deepStrictEqual(outcomes, ["error", "completed"])
        assert.strictEqual(ofType(plane.events, "CoreStopped").at(-1)?.payload.summary, "It is all sand.")
        assert.lengthOf(did, 3)
        const jobs = requests.map(({ body }) => JSON.stringify(body)).filter(isJob)
        assert.lengthOf(jobs, 5)
        for (const part of ["sand of layer 1", "sand of layer 2", "Further instruction: dig a hole"])
          assert.strictEqual(times(jobs[3] ?? "", part), 1, part)
        const [first, second] = ofType(plane.events, "CoreStarted")
        assert.strictEqual(second?.payload.resumes?.job_id, first?.payload.job_id)
        assert.include(spoken(plane.events).at(-1)?.payload.facts, "dig completed in")
        assert.include(spoken(plane.events).at(-1)?.payload.facts, "5 steps, 3 tool calls")
      }).pipe(Effect.scoped)
    )
})

/** A job of {@link STEPS} steps. One answer of a hundred breaks, half of them before their first byte and half within. */
const longJob = Effect.fnUntraced(function* (seed: number) {
  // Seeds that follow each other begin alike.
  const random = seeded(Math.imul(seed, 2_654_435_761))
  let broken = 0
  const run = yield* setUp("openai", true, (_, body) => {
    const messages = isObject(body) && Array.isArray(body["messages"]) ? body["messages"] : []
    const step = messages.filter((message) => isObject(message) && message["role"] === "tool").length
    const [breaks, isBegun] = [random(BROKEN_EVERY) === 0, random(2) === 0]
    if (breaks) broken += 1
    if (breaks && !isBegun) return double.cut()
    const words = { text: `dug ${step} layers` }
    const said = step < STEPS - 1 ? { calls: [{ name: "mem-look", input: { layer: step } }], text: "On." } : words
    return double.say(said, breaks ? { breaks: { after: 1, how: "cut" } } : {})
  }).pipe(Effect.scoped)
  return { ...run, broken }
})

describe(`a job of ${STEPS} steps, of whose answers one in a hundred breaks off`, () => {
  it.live(
    "ends completed with a fallback alias, or once edge has resumed it, and makes each call once",
    () =>
      Effect.gen(function* () {
        const runs = yield* Effect.forEach(
          Array.from({ length: SIZE.longJobs }, (_, index) => index + 1),
          (seed) =>
            Effect.map(longJob(seed), ({ broken, did, outcomes, plane, refusals }) => {
              assert.deepStrictEqual(refusals, [], `seed ${seed}`)
              assert.lengthOf(did, STEPS - 1, `seed ${seed}`)
              assert.strictEqual(
                ofType(plane.events, "CoreStopped").at(-1)?.payload.summary,
                `dug ${STEPS - 1} layers`,
                `seed ${seed}`
              )
              return { broken, outcomes }
            })
        )
        const completed = runs.filter(({ outcomes }) => outcomes.at(-1) === "completed").length
        const direct = runs.filter(({ outcomes }) => outcomes.length === 1).length
        const broken = runs.reduce((sum, run) => sum + run.broken, 0)
        yield* Effect.logInfo(
          `${completed} of ${runs.length} completed, ${direct} of them without a resume; ${broken} connections broke`
        )
        assert.isAbove(broken, runs.length)
        assert.isAtLeast(completed, Math.ceil(0.99 * runs.length))
      }),
    1_800_000
  )
})
