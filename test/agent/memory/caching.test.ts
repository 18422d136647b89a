/** What a provider's cache is worth over long work: the share of prompts that was sent before, the calls for memory, and the cost beside the ideal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { type Counted, layerCachingModel } from "../../support/testing/CachingModel.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { fillerOf } from "../../support/filler.ts"
import { costSum, idealCost, TRIGGER } from "../../support/idealCost.ts"
import { bookOf, carefulChange } from "../../support/skills.ts"
import { calls, isCompaction, isCore, type Said, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const STEPS = 200
const STEPS_BESIDE = 60
const TURNS_BESIDE = 30
const TURNS = 100

const look = testTool(
  "mem.look",
  () => Effect.succeed({ status: "success", summary: "read", output: fillerOf(sizes(++looked), looked) }),
  {
    effect: "none",
    readOnly: true
  }
)
let looked = 0
/** From a line to a page, and on the average what reads, searches and commands of a real job come to. */
const sizes = (step: number): number => 100 + ((step * 379) % 1300)

const config = {
  ...agentConfig({
    per_job_max_steps: 1000,
    per_job_max_tool_calls: 5000,
    turn_max_steps: 50,
    message_max_steps: 1000,
    total_session_tokens: 1_000_000_000,
    max_tool_calls_per_session: 10_000
  })
}

const remembering = calls([
  "choir.memory.delta",
  { mode: "overwrite", summary_update: `Goal: to finish.\nDone: ${fillerOf(600, 3)}` }
])
const failing: Said = { finish_reason: "error", error: { kind: "http", message: "500" } }
const asked = (messages: ReadonlyArray<Message>): string =>
  messages.findLast(({ content, role }) => role === "user" && !content?.startsWith("<choir-note>"))?.content ?? ""
const isReport = (messages: ReadonlyArray<Message>) =>
  messages.at(-1)?.content?.startsWith("<choir-note>\nReport:") === true

/** Jobs of so many steps, which report now and then; edge reads in every third turn. */
const worker = (jobs: ReadonlyArray<string>, reports: number, memory: Said, last_step = STEPS): Script => {
  const steps = new Map<string, number>()
  let reads = 0
  const answer = (messages: ReadonlyArray<Message>): Said => {
    if (isCompaction(messages)) return memory
    if (isCore(messages)) {
      const job = messages[1]?.content?.slice(0, 30) ?? ""
      const step = (steps.get(job) ?? 0) + 1
      steps.set(job, step)
      if (step > last_step) return says(`done: ${fillerOf(80, step)}`)
      if (reports > 0 && step % reports === 0)
        return calls(["choir.core.report", { kind: "progress", text: `step ${step}: ${fillerOf(30, step)}` }])
      return calls(["mem.look", { step, job }])
    }
    if (isReport(messages)) return says("a job ended")
    const last = messages.at(-1)
    const isNew = last?.role === "user"
    if (isNew && last.content === "go" && jobs.length > 0)
      return calls(...jobs.map((job_name) => ["choir.core.spawn", { job_name, task_spec: "work" }] as const))
    if (isNew && Number(/\d+/u.exec(asked(messages))?.[0] ?? 1) % 3 === 0) {
      reads += 2
      return calls(["mem.look", { reads }], ["mem.look", { reads: reads + 1 }])
    }
    return says(fillerOf(60, messages.length))
  }
  // Jobs work in the background, as fast as a model of theirs may be.
  return (messages) =>
    isCore(messages) && jobs.length > 1
      ? Effect.map(Effect.sleep("500 millis"), () => answer(messages))
      : Effect.sync(() => answer(messages))
}

const run = Effect.fnUntraced(function* (script: Script, messages: number, first = "go") {
  looked = 0
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const counted: Array<Counted> = []
  yield* Effect.forkScoped(
    runAgent({
      plane,
      script,
      llm: layerCachingModel(script, counted),
      tools: [look, memoryDelta],
      skills: bookOf(carefulChange),
      config
    })
  )
  yield* plane.say(first)
  yield* plane.until((events) => spoken(events).length === 1)
  for (let said = 1; said < messages; said++) {
    // A person reads before they write, while jobs go on.
    yield* Effect.sleep("1 second")
    yield* plane.say(`message ${said}: ${fillerOf(40, said)}`)
    yield* plane.until((events) => spoken(events).filter(({ payload }) => payload.kind === "reply").length > said)
  }
  yield* plane.until((_, state) => quiet(state))
  assert.deepStrictEqual(
    ofType(plane.events, "CoreStopped").filter(({ payload }) => payload.outcome !== "completed"),
    []
  )
  return counted
})

const sum = (counted: ReadonlyArray<Counted>, of: (one: Counted) => number) =>
  counted.reduce((total, one) => total + of(one), 0)

const figuresOf = (counted: ReadonlyArray<Counted>) => {
  const turns = counted.filter((one) => !one.isCompaction)
  // Of what the request before sent; a prompt that became shorter follows a compaction.
  const found = counted.flatMap(({ cached, input }, index) => {
    const before = counted[index - 1]?.input ?? 0
    return before < FOUND_TOKENS_MIN || input < before ? [] : [cached / before]
  })
  return {
    calls: counted.length,
    share: sum(counted, ({ cached }) => cached) / sum(counted, ({ input }) => input),
    extra: (counted.length - turns.length) / turns.length,
    lowest: Math.min(1, ...found),
    largest: Math.max(...turns.map(({ input }) => input)),
    cost: costSum(counted)
  }
}

/** Below this the steps in which a cache counts are too coarse. */
const FOUND_TOKENS_MIN = 3000
const told = (what: string, figures: ReturnType<typeof figuresOf>) => {
  if (process.env["CHOIR_FIGURES"] !== undefined) process.stderr.write(`${what}: ${JSON.stringify(figures)}\n`)
  return figures
}

describe("the prompts of long work", () => {
  it.effect(
    `of a job of ${STEPS} steps were sent before for 97 %, with 2 % of calls for memory, near the least cost`,
    () =>
      Effect.gen(function* () {
        const counted = yield* run(worker(["long"], 0, remembering), 1)
        const job = counted.filter(({ lane }) => lane === "core")
        const { cost, extra, largest, lowest, share } = told("job", figuresOf(job))
        assert.isAtLeast(share, 0.97)
        assert.isAtMost(extra, 0.02)
        assert.isAtLeast(lowest, 0.9)
        assert.isAtMost(largest, TRIGGER)
        assert.isAbove(largest, TRIGGER / 2, "the job is long enough to be compacted")
        const ratio = cost / idealCost(job)
        if (process.env["CHOIR_FIGURES"] !== undefined) process.stderr.write(`job: ${ratio} of the ideal cost\n`)
        assert.isAtMost(ratio, 1.1)
      })
  )

  it.effect(`of a chat of ${TURNS} turns were sent before for 97 %`, () =>
    Effect.gen(function* () {
      const { extra, lowest, share } = told("chat", figuresOf(yield* run(worker([], 0, remembering), TURNS, "hello")))
      assert.isAtLeast(share, 0.97)
      assert.isAtMost(extra, 0.02)
      assert.isAtLeast(lowest, 0.9)
    })
  )

  it.effect("of edge beside three jobs that report were sent before for 95 %", () =>
    Effect.gen(function* () {
      const counted = yield* run(worker(["a", "b", "c"], 5, remembering, STEPS_BESIDE), TURNS_BESIDE)
      const edge = counted.filter(({ lane }) => lane === "edge")
      const { share } = told("edge beside jobs", figuresOf(edge))
      assert.isAtLeast(share, 0.95)
    })
  )

  it.effect("of a job whose compactions all fail were sent before for 95 %, and none is over the limit", () =>
    Effect.gen(function* () {
      const counted = (yield* run(worker(["long"], 0, failing), 1)).filter(({ lane }) => lane === "core")
      const { extra, largest, share } = told("job without compactions", figuresOf(counted))
      assert.isAtLeast(share, 0.95)
      assert.isAtMost(extra, 0.04)
      assert.isAtMost(largest, TRIGGER)
    })
  )
})
