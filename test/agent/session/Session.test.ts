import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script, isCore } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const last = (messages: ReadonlyArray<Message>) => messages.at(-1)
const isReport = (messages: ReadonlyArray<Message>) =>
  messages.some(({ content, role }) => role === "user" && content.startsWith("<choir-note>\nReport:"))

const spawnThen =
  (core: Script): Script =>
  (messages, tools) => {
    if (isCore(messages)) return core(messages, tools)
    if (isReport(messages)) return Effect.succeed(says("the job ended"))
    return Effect.succeed(
      last(messages)?.role === "user"
        ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }])
        : says("started")
    )
  }

describe("Session", () => {
  it.effect("answers each message with exactly one reply, in order", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(
        runAgent({ plane, script: (messages) => Effect.succeed(says(`heard ${last(messages)?.content}`)) })
      )
      for (const text of ["one", "two", "three"]) yield* plane.say(text)
      yield* plane.until((events, state) => spoken(events).length === 3 && quiet(state))
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => [payload.kind, payload.in_reply_to, payload.text]),
        [
          ["reply", "1", "heard one"],
          ["reply", "2", "heard two"],
          ["reply", "3", "heard three"]
        ]
      )
    })
  )

  it.effect("runs the calls of one output under their locks and shows the model every result", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const order: Array<string> = []
      const slow = testTool(
        "slow.write",
        ({ call_id }) =>
          Effect.gen(function* () {
            order.push(`start ${call_id.at(-1)}`)
            yield* Effect.sleep("1 second")
            order.push(`end ${call_id.at(-1)}`)
            return { status: "success", summary: "written" } as const
          }),
        { locks: [LockRequest.make({ resource: "workspace", mode: "X" })] }
      )
      const script: Script = (messages) =>
        Effect.succeed(
          last(messages)?.role === "user"
            ? calls(["slow.write", {}], ["slow.write", {}])
            : says(`${messages.filter(({ role }) => role === "tool").length} results`)
        )
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [slow] }))
      yield* plane.say("go")
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      assert.deepStrictEqual(order, ["start 0", "end 0", "start 1", "end 1"])
      assert.deepStrictEqual(
        plane.events.map(({ event_type }) => event_type),
        [
          "UserMsg",
          "ModelOutput",
          "ToolCallRequested",
          "ToolCallCommitted",
          "ToolCallRequested",
          "ToolResultCommitted",
          "ToolCallCommitted",
          "ToolResultCommitted",
          "ModelOutput",
          "AgentMessage"
        ]
      )
      assert.strictEqual(ofType(plane.events, "AgentMessage")[0]?.payload.text, "2 results")
    })
  )

  it.effect(
    "stays in conversation while a job runs, refuses edge's writes, and reports the job when it ends (D30)",
    () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const finish = yield* Deferred.make<void>()
        const write = testTool("mem.write", () => Effect.succeed({ status: "success", summary: "written" }))
        const script: Script = (messages, tools) => {
          if (last(messages)?.role === "user" && last(messages)?.content === "write something")
            return Effect.succeed(calls(["mem.write", {}]))
          if (last(messages)?.role === "tool" && messages.some(({ content }) => content === "write something"))
            return Effect.succeed(says(String(last(messages)?.content)))
          return spawnThen(() => Effect.as(Deferred.await(finish), says("42")))(messages, tools)
        }
        yield* Effect.forkScoped(runAgent({ plane, script, tools: [write] }))
        yield* plane.say("work on it")
        yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
        assert.strictEqual(plane.state().cores.size, 1)
        yield* plane.say("write something")
        yield* plane.until((events) => ofType(events, "AgentMessage").length === 2)
        assert.include(ofType(plane.events, "AgentMessage")[1]?.payload.text, "edge only reads")
        yield* Deferred.succeed(finish, undefined)
        yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 3 && quiet(state))
        const report = ofType(plane.events, "AgentMessage")[2]?.payload
        assert.deepStrictEqual([report?.kind, report?.in_reply_to], ["report", "1"])
        const stopped = ofType(plane.events, "CoreStopped")[0]?.payload
        assert.deepStrictEqual([stopped?.outcome, stopped?.result], ["completed", "42"])
      })
  )

  it.effect("ends a cancelled job, closes its running call and leaves none of its fibers behind (R20)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const interrupted = yield* Deferred.make<void>()
      const endless = testTool("slow.wait", () =>
        Effect.never.pipe(Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined)))
      )
      const script = spawnThen(() => Effect.succeed(calls(["slow.wait", {}])))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [endless] }))
      yield* plane.say("go")
      yield* plane.until((events) => ofType(events, "ToolCallCommitted").length === 2)
      yield* plane.push({ type: "CancelCore", signal_id: "7" as never, job_name: "work" as never })
      yield* plane.until((_, state) => quiet(state))
      yield* Deferred.await(interrupted)
      assert.deepStrictEqual(
        ofType(plane.events, "ToolResultCommitted").map(({ lane, payload }) => [lane, payload.status]),
        [
          ["edge", "success"],
          ["core:work", "cancelled"]
        ]
      )
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "cancelled")
    })
  )

  it.effect("answers a signal for a job that does not run with an event", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script: () => Effect.succeed(says("hi")) }))
      yield* plane.push({ type: "CancelCore", signal_id: "9" as never, job_name: "nobody" as never })
      yield* plane.until((events) => events.length === 1)
      assert.strictEqual(ofType(plane.events, "Cancelled")[0]?.payload.reason, "no_such_job")
    })
  )

  it.effect("passes an instruction on to a running job, which goes on with it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const gate = yield* Deferred.make<void>()
      const script: Script = (messages, tools) => {
        if (!isCore(messages) && last(messages)?.role === "user" && last(messages)?.content === "tell it")
          return Effect.succeed(calls(["choir.core.inject", { job_name: "work", content: "and be quick" }]))
        return spawnThen((seen) => {
          const instructed = seen.some(({ content }) => content?.includes("and be quick") === true)
          return instructed ? Effect.succeed(says("done quickly")) : Effect.as(Deferred.await(gate), says("done"))
        })(messages, tools)
      }
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("go")
      yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
      yield* plane.say("tell it")
      yield* plane.until((events) => ofType(events, "InjectedInstruction").length === 1)
      yield* Deferred.succeed(gate, undefined)
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.result, "done quickly")
    })
  )

  it.effect(
    "stops gracefully: jobs are closed, everything is flushed, and the open turn goes on at the next start",
    () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const asked = yield* Queue.bounded<void>(10)
        const script: Script = (messages, tools) =>
          spawnThen(() => Effect.never)(messages, tools).pipe(Effect.tap(Queue.offer(asked, undefined)))
        const first = yield* Effect.forkScoped(runAgent({ plane, script }))
        yield* plane.say("go")
        yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
        yield* plane.push({ type: "Stop", deadline_ms: 20_000 })
        assert.strictEqual(yield* Deferred.await(plane.terminated), "stopped")
        assert.strictEqual(yield* Fiber.join(first), "stopped")
        assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "cancelled")
        yield* Effect.forkScoped(runAgent({ plane, script, epoch: 2 }))
        yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 2 && quiet(state))
        assert.strictEqual(ofType(plane.events, "AgentMessage")[1]?.payload.kind, "report")
      })
  )

  it.effect("ends the session at its token limit, tells the user once and starts nothing more (R23, R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const tool = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }), {
        besideJobs: true
      })
      let step = 0
      const script: Script = () => Effect.succeed(calls(["mem.read", { step: step++ }]))
      const config = agentConfig({ total_session_tokens: 60 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [tool], config }))
      yield* plane.say("loop")
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      const purposes = ofType(plane.events, "ModelOutput").map(({ payload }) => payload.purpose)
      assert.deepStrictEqual(purposes, ["turn", "turn", "turn", "turn", "summary"])
      // The summary is not a part of the limit.
      assert.isAtMost(plane.state().spent.tokens, 60 + 2 * 15)
      const told = ofType(plane.events, "AgentMessage")
      assert.strictEqual(told.length, 1)
      assert.include(told[0]?.payload.text, "total_session_tokens")
      assert.strictEqual(plane.state().edge.state, "EDGE_TERMINATED")
    })
  )

  it.effect("refuses a call from its fifth identical result on and ends the job as stuck at the eighth (R25)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let runs = 0
      const tool = testTool("mem.read", () =>
        Effect.sync(() => {
          runs++
          return { status: "success", summary: "same" } as const
        })
      )
      yield* Effect.forkScoped(
        runAgent({ plane, script: spawnThen(() => Effect.succeed(calls(["mem.read", {}]))), tools: [tool] })
      )
      yield* plane.say("go")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.strictEqual(runs, 5)
      const results = ofType(plane.events, "ToolResultCommitted").filter(({ lane }) => lane !== "edge")
      assert.deepStrictEqual(
        results.map(({ payload }) => payload.status),
        [...Array<string>(5).fill("success"), ...Array<string>(3).fill("rejected")]
      )
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "stuck")
    })
  )

  it.effect("stops a job at the exact number of its steps and calls, and at its wall time (R25)", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const [budgets, outputs, results] of [
        [{ per_job_max_steps: 7 }, 7, 7],
        [{ per_job_max_tool_calls: 3, per_job_max_steps: 6 }, 4, 4],
        [{ per_job_wall_time_ms: 4500 }, 5, 5]
      ] as const) {
        const plane = yield* makeMemoryControlPlane
        let step = 0
        const tool = testTool("mem.read", () =>
          Effect.delay(
            Effect.sync(() => ({ status: "success", summary: `${step++}` }) as const),
            "1 second"
          )
        )
        yield* Effect.forkScoped(
          runAgent({
            plane,
            script: spawnThen(() => Effect.sync(() => calls(["mem.read", { step }]))),
            tools: [tool],
            config: agentConfig(budgets)
          })
        )
        yield* plane.say("go")
        yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
        const core = plane.events.filter(({ lane }) => lane !== "edge")
        assert.strictEqual(ofType(core, "ModelOutput").length, outputs)
        assert.strictEqual(ofType(core, "ToolResultCommitted").length, results)
        assert.strictEqual(ofType(core, "CoreStopped")[0]?.payload.outcome, "budget")
      }
    })
  )

  it.effect("tells a model error as the reply and goes on with the next message", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let failed = false
      const script: Script = () => {
        if (failed) return Effect.succeed(says("better"))
        failed = true
        return Effect.succeed({ finish_reason: "error", error: { kind: "http", message: "the provider answered 500" } })
      }
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("one")
      yield* plane.say("two")
      yield* plane.until((events) => spoken(events).length === 2)
      const [first, second] = spoken(plane.events)
      assert.include(first?.payload.text, "the provider answered 500")
      assert.strictEqual(second?.payload.text, "better")
    })
  )
})
