/**
 * One history with all that a session meets: a long chat, skills, a stopped turn, four jobs at once, among them a long one and one whose provider
 * fails, compactions, a crash in the middle, an ordered stop, and the lives after them. A strict provider is asked over a socket, and refuses nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, SignalId } from "#schema/Ids.ts"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { fillerOf } from "../support/filler.ts"
import { configWith, modelClient } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import { atSize, SIZE } from "../support/size.ts"
import { bookOf, skillSpec } from "../support/skills.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import * as double from "../support/testing/Provider.ts"
import { inOrder } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool } from "../support/testing/TestAgent.ts"

const STEPS = SIZE.historySteps
const TURNS = SIZE.historyTurns
/** Turns of the chat while jobs run, before and after the crash. */
const TURNS_BESIDE = 3
/** Many times what it takes: after a refusal the history waits for an answer that never comes. */
const HISTORY_MS_MAX = TURNS * 18_000

const reasoning = "The next place is unknown as yet."
const call = (name: string, input: object = {}) => double.say({ calls: [{ name, input }], reasoning })
const words = (text: string) => double.say({ text, reasoning })

const LOOKS = double.say({ calls: [1, 2].map((place) => ({ name: "mem-read", input: { place } })), reasoning })
/** The skill `tidy` from its beginning to its end. */
const SKILL = [
  call("choir-skill-start", { skill: "tidy" }),
  call("mem-read"),
  call("choir-skill-transition", { on: "complete", output: { seen: "dust" } }),
  call("ws-write"),
  call("choir-skill-transition", { on: "complete" })
]
const SUMMARY = { title: "Holes", summary: "Holes were dug.", decisions: [], open_points: [], facts: [] }

/** A job's name stands in its task. */
const SPAWNS = double.say({
  calls: ["long", "reporting", "tidying", "failing"].map((job_name) => ({
    name: "choir-core-spawn",
    input: { job_name, task_spec: `Dig the hole ${job_name}.` }
  })),
  reasoning
})
/** The steps after which the two jobs that a crash interrupts wait for it. */
const STEPS_BEFORE_CRASH = STEPS / 4
/** The request of the failing job that fails, and the one that ends it. */
const [FAILS_AT, ENDS_AT] = [3, 6]

/** The steps of a lane; a compaction is none. */
const stepsOf = (events: ReadonlyArray<ChoirEvent>, lane: string): number =>
  ofType(events, "ModelOutput").filter((event) => event.lane === lane && event.payload.purpose === "turn").length

/** The answers of jobs. Steps count once choird has them, so that a crash loses none. */
const makeWorkers = (plane: MemoryControlPlane, crashed: Effect.Effect<void>) => {
  const skill = [...SKILL]
  let [failing, digging] = [0, 0]
  const digs = (name: string, last_step: number): double.Reply => {
    const step = stepsOf(plane.events, `core:${name}`)
    // Other calls than before, whatever choird has by now.
    digging += 1
    const reply =
      step > last_step
        ? words(`dug: ${fillerOf(80, step)}`)
        : name === "reporting"
          ? call("choir-core-report", { kind: "progress", text: `step ${step}, ${digging}` })
          : call("mem-read", { digging })
    return step < STEPS_BEFORE_CRASH ? reply : Effect.andThen(crashed, reply)
  }
  return (text: string): double.Reply => {
    switch (/Dig the hole (\w+)/u.exec(text)?.[1]) {
      case "tidying":
        return skill.shift() ?? words("all is in order")
      case "failing":
        failing += 1
        if (failing === FAILS_AT) return double.failing(500)
        return failing < ENDS_AT ? call("mem-read", { failing }) : words("it is sand")
      case "reporting":
        return digs("reporting", STEPS / 2)
      default:
        return digs("long", STEPS)
    }
  }
}

/** A model that knows its prompt and the plan of the present turn. */
const makeModel = (plane: MemoryControlPlane, crashed: Effect.Effect<void>) => {
  const work = makeWorkers(plane, crashed)
  const planned: Array<double.Reply> = []
  let [said, isResumed] = [0, false]

  const report = (text: string): double.Reply => {
    const failed = String.raw`\"job_name\":\"failing\",\"outcome\":\"error\"`
    if (isResumed || !text.includes(failed)) return words("A job ended.")
    isResumed = true
    return call("choir-core-spawn", { job_name: "failing", task_spec: "Dig on.", resume: true })
  }
  return {
    /** The messages so far. */
    said: () => said,
    /** A person's message, and the answers of its turn before the last one. */
    say: (replies: ReadonlyArray<double.Reply>) =>
      Effect.suspend(() => {
        said += 1
        planned.splice(0, planned.length, ...replies, words(fillerOf(60, said)))
        return plane.say(`message ${said}: ${fillerOf(40, said)}`)
      }),
    decide: ({ body }: double.ProviderRequest): double.Reply => {
      const text = JSON.stringify(body)
      if (text.includes("Compaction: your context is nearly full"))
        return call("choir-memory-delta", { summary_update: `Goal: to dig.\nDone: ${fillerOf(50, said)}` })
      if (text.includes("A session of an agent with its user ends.")) return call("choir-session-summary", SUMMARY)
      if (text.includes("You carry out one task")) return work(text)
      const isReport = text.lastIndexOf(String.raw`<choir-note>\nReport:`) > text.lastIndexOf(`message ${said}:`)
      return isReport ? report(text) : (planned.shift() ?? words("Fine."))
    }
  }
}

const configOf = (endpoint: string, dialect: DialectName) => {
  const { budgets, memory } = agentConfig({
    per_job_max_steps: 1000,
    per_job_max_tool_calls: 5000,
    message_max_steps: 1000,
    max_tool_calls_per_session: 5000,
    total_session_tokens: 1e9
  })
  const entry = { ...modelEntry(dialect), endpoint, context_window: 128_000, reasoning_effort: "low" }
  return configWith(entry, { budgets, memory: { ...memory, window_tokens_max: SIZE.historyWindow } })
}

/** Tools whose results are of many lengths. */
const makeTools = () => {
  let looked = 0
  const read = testTool(
    "mem.read",
    () =>
      Effect.sync(() => {
        looked += 1
        const output = fillerOf(20 + ((looked * 379) % (SIZE.historyWindow / 40)), looked)
        return { status: "success", summary: "read", output } as const
      }),
    { effect: "none", readOnly: true }
  )
  return [read, testTool("ws.write", () => Effect.succeed({ status: "success", summary: "written" })), memoryDelta]
}

const setUp = Effect.fnUntraced(function* (dialect: DialectName) {
  const provider = yield* double.makeProviderOf({ dialect, counts: true })
  const plane = yield* makeMemoryControlPlane
  const crash = yield* Deferred.make<void>()
  const model = makeModel(plane, Deferred.await(crash))
  yield* provider.otherwise(model.decide)
  const [config, llm, tools] = [configOf(provider.endpoint, dialect), yield* modelClient, makeTools()]
  const skills = bookOf(skillSpec())
  const answered = plane.until(
    (events) => spoken(events).filter(({ payload }) => payload.kind === "reply").length === model.said()
  )
  const turn = (...replies: ReadonlyArray<double.Reply>) => Effect.andThen(model.say(replies), answered)
  return {
    answered,
    crash: Deferred.succeed(crash, undefined),
    live: (epoch: number) =>
      Effect.forkScoped(runAgent({ plane, epoch, script: inOrder(), llm, tools, skills, config })),
    model,
    plane,
    provider,
    turn,
    /** Turns of which a third look at two places. */
    chat: (turns: number) =>
      Effect.forEach(
        Array.from({ length: turns }, (_, at) => at),
        (at) => (at % 3 === 0 ? turn(LOOKS) : turn()),
        { discard: true }
      )
  }
})

/** A turn that a person stops while its model thinks. */
const stoppedTurn = Effect.fnUntraced(function* ({ answered, model, plane }: Effect.Success<ReturnType<typeof setUp>>) {
  const thinks = yield* Deferred.make<void>()
  const inbox_id = yield* model.say([Effect.andThen(Deferred.succeed(thinks, undefined), Effect.never)])
  yield* Deferred.await(thinks)
  yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("900"), turn: { inbox_id } })
  yield* answered
})

const endedJobs = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "CoreStopped").map(({ lane, payload }) => `${lane} ${payload.outcome}`)

/** The three lives of a session. */
const history = Effect.fnUntraced(function* (dialect: DialectName) {
  const world = yield* setUp(dialect)
  const { chat, crash, live, model, plane, provider, turn } = world
  const first = yield* live(1)
  yield* chat(TURNS / 2)
  yield* turn(...SKILL)
  yield* stoppedTurn(world)
  yield* turn(SPAWNS)
  yield* chat(TURNS_BESIDE)
  yield* plane.until(
    (events) =>
      endedJobs(events).length === 3 &&
      ["core:long", "core:reporting"].every((lane) => stepsOf(events, lane) >= STEPS_BEFORE_CRASH)
  )
  plane.cutOff()
  yield* Fiber.interrupt(first)
  yield* crash
  const second = yield* live(2)
  yield* chat(TURNS_BESIDE)
  yield* plane.until((events, state) => endedJobs(events).length === 5 && quiet(state))
  yield* chat(TURNS / 2)
  yield* plane.push({ type: "Stop", deadline_ms: 60_000 })
  assert.strictEqual(yield* Fiber.join(second), "stopped")
  yield* live(3)
  yield* turn()
  return { plane, said: model.said(), summary: yield* provider.summary }
})

const CHAT_DIALECTS: ReadonlyArray<DialectName> = atSize<DialectName>(
  ["openai"],
  ["responses", "anthropic", "openrouter", "kimi", "deepseek", "gemini", "qwen-template", "mistral"]
)

describe(`a history of over ${TURNS} turns, four jobs, one of ${STEPS} steps, skills, a stop, a crash and a resume`, () => {
  for (const dialect of CHAT_DIALECTS)
    it.live(
      `has no request that ${dialect} refuses`,
      () =>
        Effect.gen(function* () {
          const { plane, said, summary } = yield* history(dialect)
          const { events } = plane
          assert.strictEqual(summary.refusals, 0)
          assert.isAbove(said, TURNS)
          assert.lengthOf(ofType(events, "UserMsg"), said)
          assert.isAbove(stepsOf(events, "core:long"), STEPS)
          assert.sameMembers(endedJobs(events), [
            "core:tidying completed",
            "core:failing error",
            "core:failing completed",
            "core:long completed",
            "core:reporting completed"
          ])
          const tidied = ofType(events, "SkillTransitionCommitted").filter(({ payload }) => payload.to === "done")
          assert.sameMembers(
            tidied.map(({ lane }) => lane as string),
            [EDGE, "core:tidying"]
          )
          assert.lengthOf(ofType(events, "Cancelled"), 1, "the stopped turn")
          assert.lengthOf(
            ofType(events, "CoreStarted").filter(({ payload }) => payload.resumes !== undefined),
            1,
            "the resumed job"
          )
          assert.deepStrictEqual(plane.summaries, [SUMMARY])
          const compacted = new Set(ofType(events, "CompactionCommitted").map(({ lane }) => lane as string))
          assert.isTrue(compacted.has(EDGE) && compacted.has("core:long"), [...compacted].join())
          yield* Effect.logInfo(`${dialect}: ${summary.calls} requests, ${events.length} events, none refused`)
        }).pipe(Effect.scoped),
      HISTORY_MS_MAX
    )
})
