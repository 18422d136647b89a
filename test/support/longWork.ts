/** Long work with a scripted model, by the clock of a test: what each request has in tokens, and what of it a provider's cache has. */
import { deepStrictEqual } from "node:assert/strict"
import { Effect, Fiber } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { type Counted, layerCachingModel } from "./testing/CachingModel.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "./testing/MemoryControlPlane.ts"
import { fillerOf } from "./filler.ts"
import { bookOf, carefulChange } from "./skills.ts"
import { calls, isCompaction, isCore, type Said, says, type Script } from "./testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "./testing/TestAgent.ts"

/** Steps of each job. */
export const STEPS = 200
/** Turns of each chat. */
export const TURNS = 100

const look = testTool(
  "mem.look",
  () => Effect.succeed({ status: "success", summary: "read", output: fillerOf(sizes(++looked), looked) }),
  {
    effect: "none"
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
const worker = (jobs: ReadonlyArray<string>, reports: number, memory: Said): Script => {
  const steps = new Map<string, number>()
  let reads = 0
  const answer = (messages: ReadonlyArray<Message>): Said => {
    if (isCompaction(messages)) return memory
    if (isCore(messages)) {
      const job = messages[1]?.content?.slice(0, 30) ?? ""
      const step = (steps.get(job) ?? 0) + 1
      steps.set(job, step)
      if (step > STEPS) return says(`done: ${fillerOf(80, step)}`)
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

const conversation = Effect.fnUntraced(function* (plane: MemoryControlPlane, messages: number, first: string) {
  yield* plane.say(first)
  yield* plane.until((events) => spoken(events).length === 1)
  for (let said = 1; said < messages; said++) {
    // A person reads before they write, while jobs go on.
    yield* Effect.sleep("1 second")
    yield* plane.say(`message ${said}: ${fillerOf(40, said)}`)
    yield* plane.until((events) => spoken(events).filter(({ payload }) => payload.kind === "reply").length > said)
  }
  yield* plane.until((_, state) => quiet(state))
})

const run = Effect.fnUntraced(function* (script: Script, messages: number, first = "go") {
  looked = 0
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const counted: Array<Counted> = []
  const agent = yield* Effect.forkScoped(
    runAgent({
      plane,
      script,
      llm: layerCachingModel(script, counted),
      tools: [look, memoryDelta],
      skills: bookOf(carefulChange),
      config
    })
  )
  // A request that is refused ends the agent, and nothing would ever be answered.
  yield* Effect.raceFirst(conversation(plane, messages, first), Effect.andThen(Fiber.join(agent), Effect.never))
  deepStrictEqual(
    ofType(plane.events, "CoreStopped").filter(({ payload }) => payload.outcome !== "completed"),
    []
  )
  return counted
})
/** The requests of one lane; each run has a script of its own, since scripts count. */
const requestsOf = (lane: Counted["lane"], script: () => Script, messages: number, first?: string) =>
  Effect.map(
    Effect.suspend(() => run(script(), messages, first)),
    (counted) => counted.filter((one) => one.lane === lane)
  )

/** The requests of each kind of work. */
export const LONG_WORK = {
  job: requestsOf("core", () => worker(["long"], 0, remembering), 1),
  /** A job of which no compaction succeeds. */
  forgetful: requestsOf("core", () => worker(["long"], 0, failing), 1),
  chat: requestsOf("edge", () => worker([], 0, remembering), TURNS, "hello"),
  /** A chat beside three jobs that report every fifth step. */
  beside: requestsOf("edge", () => worker(["a", "b", "c"], 5, remembering), TURNS)
}
