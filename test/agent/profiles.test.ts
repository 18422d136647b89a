/** Jobs with profiles, with everything real but choird and the model. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type AgentType, JobProfile, type ProfileHistories } from "#schema/JobProfile.ts"
import { endFacts } from "#src/shared/session/jobText.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

const profile = (agent_type: string, more: object = {}): readonly [string, JobProfile] => [
  agent_type,
  Schema.decodeUnknownSync(JobProfile)({ agent_type, pool: "research", ...more })
]
const success = () => Effect.succeed({ status: "success" as const, summary: "done" })
const read = testTool("mem.read", success, { effect: "none" })
const write = testTool("ws.write", success)
const spawn = (more: Readonly<Record<string, Schema.Json>> = {}, job_name = "dig") =>
  ["choir.core.spawn", { job_name, task_spec: "dig a hole", ...more }] as const
const account = {
  status: "done",
  progress: 100,
  summary: "a hole is there",
  reflection: { tests_run: ["looked into it: deep"], blockers: [] }
} as const
const writeback = calls(["choir.core.writeback", account])

/** Edge makes these calls once; each request of a job gets the next of its answers, and then "dug". */
const script = (edge: Said, job: ReadonlyArray<Said>, prompts: Array<ReadonlyArray<Message>> = []): Script => {
  let asked = 0
  let hasBegun = false
  return (messages) =>
    Effect.delay(
      Effect.sync(() => {
        if (isCore(messages)) {
          prompts.push(messages)
          return job[asked++] ?? says("dug")
        }
        if (hasBegun) return says("fine")
        hasBegun = true
        return edge
      }),
      "1 second"
    )
}

interface Told {
  readonly profiles?: ReadonlyArray<readonly [string, JobProfile]>
  readonly histories?: ProfileHistories
  readonly pools?: Partial<ReturnType<typeof agentConfig>["jobs"]["pools"]>
  readonly reports?: number
}

const through = Effect.fnUntraced(function* (
  said: Script,
  { histories = {}, pools = {}, profiles = [], reports = 1 }: Told
) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const base = agentConfig()
  const config = { ...base, profiles: histories, jobs: { ...base.jobs, pools: { ...base.jobs.pools, ...pools } } }
  yield* Effect.forkScoped(runAgent({ plane, script: said, tools: [read, write], profiles: new Map(profiles), config }))
  yield* plane.say("go")
  yield* plane.until((events, state) => spoken(events).length === 1 + reports && quiet(state))
  return plane
})

const started = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStarted").map(({ payload }) => payload)
const stopped = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStopped").map(({ payload }) => payload)
const rejections = (plane: MemoryControlPlane) =>
  ofType(plane.events, "ToolResultCommitted").flatMap(({ payload }) =>
    payload.status === "rejected" ? [payload.summary] : []
  )
const history = (success_rate: number, total_runs = 20) => ({ success_rate, total_runs, avg_duration_ms: 1000 })

describe("a job with a profile", () => {
  it.effect("has its profile's tools, time and tokens, and without write access no tool that has an effect", () =>
    Effect.gen(function* () {
      const limits = { token_budget: 40, timeout_ms: 60_000 }
      const job = [calls(["ws.write", {}]), calls(["mem.read", {}]), calls(["mem.read", {}])]
      const plane = yield* through(script(calls(spawn({ agent_type: "scout" })), job), {
        profiles: [profile("scout", { limits })]
      })
      const [start] = started(plane)
      const tools = start?.start.tool_constraints.allowed_tools ?? []
      assert.includeMembers<string>([...tools], ["choir.core.report", "choir.core.writeback", "mem.read"])
      assert.notInclude(tools.join(" "), "ws.write")
      assert.strictEqual(start?.budgets.wall_time_ms, 60_000)
      assert.strictEqual(start?.budgets.max_tokens, 40)
      assert.strictEqual(`${start?.start.agent_type} ${start?.start.pool}`, "scout research")
      assert.isTrue(rejections(plane).some((text) => text.startsWith("the job may not use ws-write")))
      const [stop] = stopped(plane)
      assert.strictEqual(stop?.outcome, "budget")
      assert.include(stop?.summary, "limit of 40 tokens (token_budget of its profile)")
    })
  )

  it.effect("ends with its account, which edge reads", () =>
    Effect.gen(function* () {
      const prompts: Array<ReadonlyArray<Message>> = []
      const plane = yield* through(script(calls(spawn({ agent_type: "scout" })), [writeback], prompts), {
        profiles: [profile("scout")]
      })
      const [stop] = stopped(plane)
      assert.deepStrictEqual(stop?.writeback, account)
      assert.notProperty(stop, "orphan")
      assert.strictEqual(prompts.length, 2)
    })
  )

  it.effect("is asked once for an account, together with what else is wrong, and gives it", () =>
    Effect.gen(function* () {
      const prompts: Array<ReadonlyArray<Message>> = []
      const output_schema = { type: "object", required: ["depth"] }
      const said = script(
        calls(spawn({ agent_type: "scout", output_schema })),
        [says("dug"), writeback, says('{"depth":2}')],
        prompts
      )
      const plane = yield* through(said, { profiles: [profile("scout")] })
      const asked = prompts[1]?.at(-1)?.content ?? ""
      assert.match(asked, /does not fit what was asked for.+choir-core-writeback/u)
      const [stop] = stopped(plane)
      assert.strictEqual(stop?.outcome, "completed")
      assert.deepStrictEqual(stop?.result, { depth: 2 })
      assert.deepStrictEqual(stop?.writeback, account)
    })
  )

  it.effect("is an orphan where it ends without one, and the user reads that", () =>
    Effect.gen(function* () {
      const prompts: Array<ReadonlyArray<Message>> = []
      const plane = yield* through(script(calls(spawn({ agent_type: "scout" })), [], prompts), {
        profiles: [profile("scout")]
      })
      assert.strictEqual(prompts.length, 2)
      const [stop] = ofType(plane.events, "CoreStopped")
      assert.deepInclude(stop?.payload, { outcome: "completed", orphan: true })
      const report = spoken(plane.events).find(({ payload }) => payload.kind === "report")
      assert.include(report?.payload.facts, "It gave no account of its work (no writeback)")
      assert.include(stop === undefined ? "" : (endFacts(stop) ?? ""), "no writeback")
    })
  )

  it.effect("owes nothing without a profile", () =>
    Effect.gen(function* () {
      const plane = yield* through(script(calls(spawn()), []), { profiles: [profile("scout")] })
      assert.notProperty(stopped(plane)[0], "orphan")
      assert.notProperty(stopped(plane)[0], "writeback")
    })
  )
})

describe("the choice of a job's profile", () => {
  const two = [profile("cheap"), profile("careful")]
  const measured = (cheap: number, careful: number): ProfileHistories => ({
    ["cheap" as AgentType]: history(cheap),
    ["careful" as AgentType]: history(careful)
  })
  const chosen = (told: Told, more = {}) =>
    Effect.map(through(script(calls(spawn({ pool: "research", ...more })), [writeback]), told), started)

  it.effect("prefers in a pool the type that was measured to succeed more often", () =>
    Effect.gen(function* () {
      const [better] = yield* chosen({ profiles: two, histories: measured(0.4, 0.9) })
      assert.strictEqual(better?.start.agent_type, "careful")
    })
  )

  it.effect("prefers the other one where it was measured the other way round", () =>
    Effect.gen(function* () {
      const [better] = yield* chosen({ profiles: two, histories: measured(0.9, 0.4) })
      assert.strictEqual(better?.start.agent_type, "cheap")
    })
  )

  it.effect("is chosen by what choird measured meanwhile, once it has the end of a job of a type", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const before = agentConfig()
      const histories = { cheap: history(0.2), careful: history(0.9) } as Readonly<
        Record<AgentType, ReturnType<typeof history>>
      >
      const turned = { cheap: history(0.9), careful: history(0.2) } as typeof histories
      const said: Script = (messages) =>
        Effect.delay(
          Effect.sync(() => {
            if (isCore(messages)) return says("dug")
            const spawned = started(plane).length
            const asked = ofType(plane.events, "UserMsg").length
            return spawned < asked ? calls(spawn({ pool: "research" }, `dig-${spawned}`)) : says("fine")
          }),
          "1 second"
        )
      const config = { ...before, profiles: histories }
      yield* Effect.forkScoped(runAgent({ plane, script: said, tools: [read, write], profiles: new Map(two), config }))
      plane.configure({ ...before, profiles: turned })
      yield* plane.say("go")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      yield* plane.say("again")
      yield* plane.until((events, state) => spoken(events).length === 4 && quiet(state))
      assert.deepStrictEqual(
        started(plane).map(({ start }) => `${start.agent_type}`),
        ["careful", "cheap"]
      )
    })
  )

  it.effect("takes a type that is free where the better one is at work as often as it may", () =>
    Effect.gen(function* () {
      const both = calls(spawn({ pool: "research" }), spawn({ pool: "research" }, "more"))
      const plane = yield* through(script(both, []), { profiles: two, histories: measured(0.4, 0.9), reports: 2 })
      assert.sameMembers(
        started(plane).map(({ start }) => start.agent_type),
        ["careful", "cheap"]
      )
    })
  )

  it.effect("refuses as CAPACITY, saying what to do, where the type is full", () =>
    Effect.gen(function* () {
      const twice = calls(spawn({ agent_type: "cheap" }), spawn({ agent_type: "cheap" }, "more"))
      const full = yield* through(script(twice, []), { profiles: two })
      assert.deepStrictEqual(rejections(full), [
        "CAPACITY: 1 of 1 jobs of the type cheap run (dig). Wait for one to end, cancel one, or choose another type"
      ])
    })
  )

  it.effect("counts the capacity of a pool over its types", () =>
    Effect.gen(function* () {
      const both = calls(spawn({ agent_type: "cheap" }), spawn({ agent_type: "careful" }, "more"))
      const full = yield* through(script(both, []), { profiles: two, pools: { research: 1 } })
      assert.deepStrictEqual(rejections(full), [
        "CAPACITY: the pool research is full (jobs.pools.research is 1; running: dig). Wait for one to end, cancel one, or do the work yourself"
      ])
    })
  )

  it.effect("refuses a type that there is not, and one of another pool", () =>
    Effect.gen(function* () {
      const wrong = calls(spawn({ agent_type: "nobody" }), spawn({ agent_type: "cheap", pool: "review" }, "more"))
      const plane = yield* through(script(wrong, []), { profiles: two, reports: 0 })
      assert.deepStrictEqual(rejections(plane), [
        "there is no job type nobody; there are cheap, careful",
        "the job type cheap belongs to the pool research, not review: leave pool out"
      ])
    })
  )
})
