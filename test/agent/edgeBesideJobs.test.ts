/** Edge keeps its turn while jobs fill every slot for tools, or wait for a choird that is away. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Option } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import type { Tool } from "#src/agent/tools/Tool.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"

const JOBS = Array.from({ length: TOOLS_IN_FLIGHT_MAX }, (_, index) => `job-${index}`)

/** Every job calls `slow`; edge reads when it is asked to. */
const script: Script = (messages) => {
  const last = messages.at(-1)
  if (isCore(messages)) return Effect.succeed(last?.role === "tool" ? says("done") : calls(["test.slow", {}]))
  if (last?.role === "user" && last.content === "go")
    return Effect.succeed(
      calls(...JOBS.map((job_name) => ["choir.core.spawn", { job_name, task_spec: "work" }] as const))
    )
  if (last?.role === "user" && last.content === "read") return Effect.succeed(calls(["test.read", {}]))
  return Effect.succeed(says("fine"))
}

const read = testTool("test.read", () => Effect.succeed({ status: "success", summary: "read" }), {
  effect: "none",
  timeout_ms: 1000
})

/** What edge's read came to, once as many calls of jobs as there are jobs have come so far. */
const readBeside = Effect.fnUntraced(function* (
  slow: Tool,
  event: "ToolCallRequested" | "ToolCallCommitted",
  count: number
) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const config = agentConfig({ max_core_jobs: JOBS.length })
  yield* Effect.forkScoped(runAgent({ plane, script, tools: [slow, read], config }))
  yield* plane.say("go")
  yield* plane.until((events) => ofType(events, event).filter(({ lane }) => lane !== "edge").length >= count)
  yield* plane.say("read")
  const ended = (events: typeof plane.events) =>
    ofType(events, "ToolResultCommitted").filter(
      ({ payload: { summary } }) => summary.startsWith("read") || summary.includes("test-read")
    )
  yield* plane.until((events) => ended(events).length === 1)
  return { plane, result: ended(plane.events)[0]?.payload }
})

describe("edge beside jobs", () => {
  it.effect("reads at once while eight jobs wait for slow tools", () =>
    Effect.gen(function* () {
      const end = Deferred.makeUnsafe<void>()
      const slow = testTool("test.slow", () => Effect.as(Deferred.await(end), { status: "success", summary: "slow" }), {
        effect: "none"
      })
      const { plane, result } = yield* readBeside(slow, "ToolCallRequested", JOBS.length)
      assert.strictEqual(result?.summary, "read")
      yield* Deferred.succeed(end, undefined)
      yield* plane.until((_, state) => quiet(state))
    }).pipe(Effect.scoped)
  )

  it.effect("makes a call without an effect of a tool that can do more, and no other call of it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const both = testTool("test.page", () => Effect.succeed({ status: "success", summary: "looked" }), {
        effect: "external"
      })
      // As a browser: a look has no effect, and the tool as a whole may do anything.
      const page: Tool = {
        ...both,
        prepare: (input) =>
          Effect.map(both.prepare(input), (prepared) =>
            JSON.stringify(input).includes("look") ? { ...prepared, effect: "none" } : prepared
          )
      }
      const slow = testTool("test.slow", () => Effect.never, { effect: "none" })
      const script: Script = (messages) => {
        const content = messages.at(-1)?.content ?? ""
        if (isCore(messages)) return Effect.succeed(calls(["test.slow", {}]))
        if (content === "go")
          return Effect.succeed(calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }]))
        return Effect.succeed(
          /^(?:look|click)$/u.test(content) ? calls(["test.page", { action: content }]) : says("fine")
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [page, slow] }))
      const results = (events: typeof plane.events) =>
        ofType(events, "ToolResultCommitted").map(({ payload: { status, summary } }) => `${status}: ${summary}`)
      yield* plane.say("go")
      yield* plane.until((_, state) => state.cores.size === 1)
      yield* plane.say("look")
      yield* plane.until((events) => results(events).some((text) => text === "success: looked"))
      yield* plane.say("click")
      yield* plane.until((events) => results(events).some((text) => /^rejected: .*edge only reads/u.test(text)))
    }).pipe(Effect.scoped)
  )

  it.effect("reads the true reason of a refusal while a job holds the locks, and keeps facts", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const locks = [LockRequest.make({ resource: "workspace", mode: "X" })]
      const hold = testTool("test.hold", () => Effect.never, { locks })
      const write = testTool("test.write", () => Effect.succeed({ status: "success", summary: "written" }), { locks })
      const keep = testTool("test.keep", () => Effect.succeed({ status: "success", summary: "kept" }), {
        effect: "external",
        besideJobs: true
      })
      const script: Script = (messages) => {
        const content = messages.at(-1)?.content ?? ""
        if (isCore(messages)) return Effect.succeed(calls(["test.hold", {}]))
        if (content === "go")
          return Effect.succeed(calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }]))
        return Effect.succeed(content === "write" ? calls(["test.write", {}], ["test.keep", {}]) : says("fine"))
      }
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [hold, write, keep] }))
      yield* plane.say("go")
      yield* plane.until((events) => ofType(events, "ToolCallCommitted").some(({ lane }) => lane !== "edge"))
      yield* plane.say("write")
      const results = (events: typeof plane.events) =>
        ofType(events, "ToolResultCommitted").map(({ payload: { status, summary } }) => `${status}: ${summary}`)
      yield* plane.until((events) => results(events).length === 3)
      const [refused, started, kept] = results(plane.events).sort()
      assert.match(refused ?? "", /^rejected: while jobs run \(work\) edge only reads/u)
      assert.deepStrictEqual([started, kept], ["success: job work was started", "success: kept"])
    }).pipe(Effect.scoped)
  )

  it.effect("is not kept from a tool by calls that wait for choird to confirm their intent", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const back = Deferred.makeUnsafe<void>()
      const ran = Deferred.makeUnsafe<void>()
      yield* Effect.forkScoped(plane.away(Deferred.await(back)))
      const send = testTool("test.send", () => Effect.succeed({ status: "success", summary: "sent" }), {
        effect: "external"
      })
      const local = testTool(
        "test.local",
        () => Effect.as(Deferred.succeed(ran, undefined), { status: "success", summary: "ran" }),
        { timeout_ms: 1000 }
      )
      const sends = Array.from({ length: TOOLS_IN_FLIGHT_MAX }, (_, index) => ["test.send", { index }] as const)
      yield* plane.say("go")
      const script = inOrder(calls(...sends, ["test.local", {}]), says("done"))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [send, local] }))
      assert.isTrue(Option.isSome(yield* Effect.timeoutOption(Deferred.await(ran), 5000)))
      yield* Deferred.succeed(back, undefined)
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      const ended = ofType(plane.events, "ToolResultCommitted")
      assert.deepStrictEqual([...new Set(ended.map(({ payload }) => payload.status))], ["success"])
    }).pipe(Effect.scoped)
  )

  it.effect("starts a job behind writes that wait for one another", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const pause = Effect.sleep("10 millis")
      const write = (name: string) =>
        testTool(name, () => Effect.as(pause, { status: "success", summary: name }), {
          locks: [{ resource: "workspace", mode: "X" }]
        })
      const ask: Script = (messages) => {
        if (isCore(messages)) return Effect.succeed(says("done"))
        return Effect.succeed(
          messages.at(-1)?.content === "go"
            ? calls(
                ["test.first", {}],
                ["test.second", {}],
                ["test.third", {}],
                ["choir.core.spawn", { job_name: "after", task_spec: "work" }]
              )
            : says("fine")
        )
      }
      const tools = ["test.first", "test.second", "test.third"].map(write)
      yield* Effect.forkScoped(runAgent({ plane, script: ask, tools, config: agentConfig({}) }))
      yield* plane.say("go")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload.status)
      assert.deepStrictEqual(new Set(results), new Set(["success"]))
      assert.lengthOf(ofType(plane.events, "CoreStarted"), 1)
    }).pipe(Effect.scoped)
  )
})
