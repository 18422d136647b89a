/** What a session and its jobs may use up, with everything real but the model (R23–R25, D28). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { seeded } from "../../support/seeded.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script, isCore } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const asked = (messages: ReadonlyArray<Message>) => messages.findLast(({ role }) => role === "user")?.content ?? ""
const job = (job_name: string, more: Readonly<Record<string, Schema.Json>> = {}) =>
  ["choir.core.spawn", { job_name, task_spec: "work", ...more }] as const
const results = (messages: ReadonlyArray<Message>) => messages.filter(({ role }) => role === "tool")
const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }), {
  effect: "none"
})

/** The messages that tell of the end of the session itself. */
const toldOfEnd = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "AgentMessage").filter(({ payload }) =>
    /This conversation continues|I have to stop/u.test(payload.text ?? "")
  )

/** Edge starts these jobs at the first message and answers every other. */
const starting =
  (jobs: ReadonlyArray<ReturnType<typeof job>>, core: Script): Script =>
  (messages, tools) => {
    if (isCore(messages)) return core(messages, tools)
    const isFirst = asked(messages) === "go" && messages.at(-1)?.role === "user"
    return Effect.succeed(isFirst ? calls(...jobs) : says("fine"))
  }

describe("budgets", () => {
  it.effect("spend at most the limit and one call for each running lane, and tell the user once (R23, R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const COST = 1000
      for (const limit of [3000, 6500, 10_000, 20_001]) {
        const plane = yield* makeMemoryControlPlane
        let step = 0
        const script = starting([job("a"), job("b"), job("c")], () =>
          Effect.delay(
            Effect.sync(() => ({
              ...calls(["mem.read", { step: step++ }]),
              usage: { input_tokens: COST - 1, output_tokens: 1 }
            })),
            "1 second"
          )
        )
        const config = agentConfig({ total_session_tokens: limit })
        yield* plane.say("go")
        const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
        assert.strictEqual(yield* Fiber.join(agent), "budget")
        const { cores, spent } = plane.state()
        assert.isAtLeast(spent.tokens, limit)
        assert.isAtMost(spent.tokens, limit + 4 * COST)
        assert.strictEqual(cores.size, 0)
        assert.deepStrictEqual(
          ofType(plane.events, "CoreStopped").map(({ payload }) => payload.outcome),
          ["budget", "budget", "budget"]
        )
        const told = toldOfEnd(plane.events)
        assert.strictEqual(told.length, 1)
        const last = plane.events.findLastIndex(({ event_type }) => event_type === "ModelOutput")
        assert.isFalse(plane.events.slice(last).some(({ event_type }) => event_type === "ToolCallCommitted"))
      }
    })
  )

  it.effect("hold whatever the order in which lanes call and tools run: tokens, money and tool calls (R23)", () =>
    Effect.gen(function* () {
      yield* ticking
      const [TOKENS, COST_USD, LANES] = [2000, 0.5, 5]
      for (let seed = 1; seed <= 18; seed++) {
        const next = seeded(seed)
        const limits = [
          { total_session_tokens: 1 + next(40_000) },
          { max_cost_usd: (1 + next(1000)) / 100 },
          { max_tool_calls_per_session: 5 + next(30) }
        ][seed % 3]
        let step = 0
        const script = starting([job("a"), job("b"), job("c"), job("d")], () =>
          Effect.suspend(() => {
            const reads = Array.from({ length: 1 + next(3) }, () => ["mem.read", { step: step++ }] as const)
            const input_tokens = next(TOKENS)
            const usage = {
              input_tokens,
              output_tokens: next(TOKENS - input_tokens),
              cost_usd: (next(100) / 100) * COST_USD
            }
            return Effect.delay(Effect.succeed({ ...calls(...reads), usage }), next(2000))
          })
        )
        const plane = yield* makeMemoryControlPlane
        const budgets = { per_job_max_steps: 1000, per_job_max_tool_calls: 1000, ...limits }
        yield* plane.say("go")
        const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config: agentConfig(budgets) }))
        assert.strictEqual(yield* Fiber.join(agent), "budget", `seed ${seed}`)
        const { spent } = plane.state()
        const { max_cost_usd, max_tool_calls_per_session, total_session_tokens } = agentConfig(budgets).budgets
        assert.isAtMost(spent.tokens, total_session_tokens + LANES * TOKENS, `seed ${seed}`)
        assert.isAtMost(spent.cost_usd, (max_cost_usd ?? Number.POSITIVE_INFINITY) + LANES * COST_USD, `seed ${seed}`)
        assert.isAtMost(spent.tool_calls, max_tool_calls_per_session, `seed ${seed}`)
        const told = toldOfEnd(plane.events)
        assert.strictEqual(told.length, 1, `seed ${seed}`)
      }
    })
  )

  it.effect("tell the user once when five lanes reach the limit at the same moment (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const together = yield* Deferred.make<void>()
      let arrived = 0
      const last = (said: Effect.Success<ReturnType<Script>>) =>
        Effect.suspend(() => {
          arrived += 1
          if (arrived === 5) Deferred.doneUnsafe(together, Effect.void)
          return Effect.as(Deferred.await(together), { ...said, usage: { input_tokens: 12_000, output_tokens: 1000 } })
        })
      const jobs = [job("a"), job("b"), job("c"), job("d")]
      const script: Script = (messages, tools) =>
        asked(messages) === "more"
          ? last(calls(["mem.read", {}]))
          : starting(jobs, () => last(calls(["mem.read", {}])))(messages, tools)
      const config = agentConfig({ total_session_tokens: 25_000 })
      yield* plane.say("go")
      yield* plane.say("more")
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      assert.strictEqual(arrived, 5)
      const told = toldOfEnd(plane.events)
      assert.strictEqual(told.length, 1)
      assert.strictEqual(ofType(plane.events, "CoreStopped").length, 4)
      assert.strictEqual(
        ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.usage.input_tokens === 12_000).length,
        5
      )
    })
  )

  it.effect("end the session at its cost and at its tool calls, in words that name the limit (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const [budgets, name] of [
        [{ max_cost_usd: 1 }, "max_cost_usd"],
        [{ max_tool_calls_per_session: 3 }, "max_tool_calls_per_session"]
      ] as const) {
        const plane = yield* makeMemoryControlPlane
        let step = 0
        const script: Script = () =>
          Effect.sync(() => ({
            ...calls(["mem.read", { step: step++ }]),
            usage: { input_tokens: 1, output_tokens: 1, cost_usd: 0.25 }
          }))
        yield* plane.say("go")
        const config = agentConfig(budgets)
        const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
        assert.strictEqual(yield* Fiber.join(agent), "budget")
        const purposes = ofType(plane.events, "ModelOutput").map(({ payload }) => payload.purpose)
        assert.deepStrictEqual(purposes, ["turn", "turn", "turn", "turn", "summary"])
        const [told, ...more] = ofType(plane.events, "AgentMessage")
        assert.deepStrictEqual(more, [])
        assert.include(told?.payload.text, name)
        assert.deepStrictEqual([told?.payload.kind, told?.payload.in_reply_to], ["reply", "1"])
      }
    })
  )

  it.effect("end the session where a limit forbids the correction of an empty reply (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = () => Effect.succeed({ usage: { input_tokens: 3000, output_tokens: 0 } })
      yield* plane.say("go")
      const agent = yield* Effect.forkScoped(
        runAgent({ plane, script, config: agentConfig({ total_session_tokens: 3000 }) })
      )
      assert.strictEqual(yield* Effect.timeout(Fiber.join(agent), "1 minute"), "budget")
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => payload.text?.startsWith("I have to stop: ")),
        [true]
      )
    })
  )

  it.effect("end the session at its limit, and do not wait for a silent model that was asked again (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const corrected = yield* Deferred.make<void>()
      const usage = { input_tokens: 1, output_tokens: 0, cost_usd: 0.25 }
      const edge: Script = (messages) =>
        messages.some(({ content }) => content?.includes("Your reply was empty") === true)
          ? Effect.andThen(Deferred.succeed(corrected, undefined), Effect.never)
          : Effect.succeed(messages.some(({ role }) => role === "tool") ? { usage } : { ...calls(job("a")), usage })
      const script: Script = (messages, tools) =>
        isCore(messages)
          ? Effect.as(Deferred.await(corrected), {
              ...calls(["mem.read", {}]),
              usage: { ...usage, cost_usd: 0.5 }
            })
          : edge(messages, tools)
      yield* plane.say("go")
      const config = agentConfig({ max_cost_usd: 1 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
      assert.strictEqual(yield* Effect.timeout(Fiber.join(agent), "20 seconds"), "budget")
      assert.deepStrictEqual(
        ofType(plane.events, "CoreStopped").map(({ payload }) => payload.outcome),
        ["budget"]
      )
    })
  )

  it.effect("end a turn after its steps with a reply that says so", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let step = 0
      const script: Script = () => Effect.sync(() => calls(["mem.read", { step: step++ }]))
      yield* plane.say("go")
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config: agentConfig({ turn_max_steps: 5 }) }))
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      assert.strictEqual(ofType(plane.events, "ModelOutput").length, 5)
      const reply = ofType(plane.events, "AgentMessage")[0]?.payload
      assert.include(reply?.text, "turn_max_steps")
      assert.strictEqual(reply?.failed, "final")
    })
  )

  it.effect("refuse one job and one instruction too many, and edge sees why", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = (messages, tools) => {
        if (asked(messages) !== "tell" || messages.at(-1)?.role !== "user")
          return starting([job("a"), job("b"), job("c")], () => Effect.never)(messages, tools)
        const tell = ["choir.core.inject", { job_name: "a", content: "c" }] as const
        return Effect.succeed(calls(tell, tell, tell))
      }
      const config = agentConfig({ max_core_jobs: 2, max_injections_per_job: 1 })
      yield* plane.say("go")
      yield* plane.say("tell")
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* plane.until((events) => spoken(events).length === 2)
      const refused = ofType(plane.events, "ToolResultCommitted")
        .filter(({ payload }) => payload.status === "rejected")
        .map(({ payload }) => payload.summary)
      assert.strictEqual(refused.length, 3)
      assert.include(refused[0], "max_core_jobs")
      assert.include(refused[1], "limit of 1 injections")
      assert.deepStrictEqual([ofType(plane.events, "CoreStarted").length, plane.state().cores.size], [2, 2])
      assert.strictEqual(ofType(plane.events, "InjectedInstruction").length, 1)
    })
  )

  it.effect("cut a call at the job's time, and neither wait for it nor run it again (E12, R25)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let runs = 0
      const endless = testTool(
        "mem.wait",
        () =>
          Effect.andThen(
            Effect.sync(() => runs++),
            Effect.never
          ),
        {
          effect: "none",
          timeout_ms: 3_600_000
        }
      )
      const script = starting([job("a", { tool_constraints: { time_budget_ms: 5000 } })], () =>
        Effect.succeed(calls(["mem.wait", {}]))
      )
      yield* plane.say("go")
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [endless] }))
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const [started] = ofType(plane.events, "CoreStarted")
      const [stopped] = ofType(plane.events, "CoreStopped")
      const result = ofType(plane.events, "ToolResultCommitted").find(({ lane }) => lane !== "edge")
      assert.deepStrictEqual([runs, result?.payload.status, stopped?.payload.outcome], [1, "cancelled", "budget"])
      assert.isAtMost(Date.parse(stopped?.created_at ?? "") - Date.parse(started?.created_at ?? ""), 5100)
    })
  )

  it.effect("end a turn, and not the process, when a tool's result is more than an event may hold (R48)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const deep = JSON.parse("[".repeat(1000) + "]".repeat(1000))
      let runs = 0
      const large = testTool(
        "mem.read",
        () => Effect.sync(() => ({ status: "success", summary: "s", output: runs++ === 0 ? deep : "fine" })),
        { effect: "none" }
      )
      const script: Script = (messages) =>
        Effect.succeed(
          messages.at(-1)?.role === "user" ? calls(["mem.read", {}]) : says(String(results(messages).at(-1)?.content))
        )
      yield* plane.say("go")
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [large] }))
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      assert.strictEqual(runs, 1)
      assert.include(ofType(plane.events, "AgentMessage")[0]?.payload.text, "cannot be kept")
    })
  )
})

describe("a job's result", () => {
  const schema = { output_schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } }
  const finishing = Effect.fnUntraced(function* (...answers: ReadonlyArray<string>) {
    const plane = yield* makeMemoryControlPlane
    const seen: Array<string> = []
    const script = starting([job("a", schema)], (messages) =>
      Effect.sync(() => {
        seen.push(String(messages.at(-1)?.content))
        return says(answers[seen.length - 1] ?? "too many")
      })
    )
    yield* plane.say("go")
    const agent = yield* Effect.forkChild(runAgent({ plane, script }))
    yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
    yield* Fiber.interrupt(agent)
    return { payload: ofType(plane.events, "CoreStopped")[0]?.payload, seen }
  })

  it.effect("is the JSON that was asked for, fenced or not", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const text of ['{"n":1}', '```json\n{"n":1}\n```', ' {"n":1}\n']) {
        const { payload, seen } = yield* finishing(text)
        assert.deepStrictEqual([payload?.outcome, payload?.result, seen.length], ["completed", { n: 1 }, 1])
      }
    })
  )

  it.effect("is corrected once, and then is an error (docs/protocol.md, What a lane sees)", () =>
    Effect.gen(function* () {
      yield* ticking
      const corrected = yield* finishing("one", '{"n":1}')
      assert.deepStrictEqual([corrected.payload?.outcome, corrected.seen.length], ["completed", 2])
      assert.include(corrected.seen[1], "not JSON")
      const failed = yield* finishing('{"n":"one"}', '{"m":1}', '{"n":1}')
      assert.deepStrictEqual([failed.payload?.outcome, failed.seen.length], ["error", 2])
      assert.include(failed.payload?.summary, "without the result")
    })
  )
})

describe("a job's model", () => {
  it.effect("ends the job when it fails, and edge tells it, in the runtime's words if its own fails too", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const failed = { finish_reason: "error", error: { kind: "http", message: "the provider answered 500" } } as const
      const replied = yield* Deferred.make<void>()
      const script: Script = (messages, tools) => {
        if (asked(messages).startsWith("<choir-note>\nReport:")) return Effect.succeed(failed)
        return starting([job("a")], () => Effect.as(Deferred.await(replied), failed))(messages, tools)
      }
      yield* plane.say("go")
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
      yield* Deferred.succeed(replied, undefined)
      yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 2 && quiet(state))
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "error")
      const report = ofType(plane.events, "AgentMessage")[1]?.payload
      assert.deepStrictEqual([report?.kind, report?.in_reply_to], ["report", "1"])
      assert.include(report?.text, "The job a ended (error): the provider answered 500")
    })
  )
})
