/** How calls get their turn, with everything real but the model and the tools (D1, E12). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, type Schema } from "effect"
import type { Tool } from "#src/agent/tools/Tool.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, says } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"
import { TOOLS_QUEUED_MAX } from "#src/agent/calls/ToolSlots.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"
import { TOOL_RESULT_BYTES_MAX } from "#src/agent/model/prompt/inlineResult.ts"

type Wanted = readonly [name: string, input: Schema.Json]

/** A tool without locks that runs until it is let go. */
const makeHolder = () => {
  const end = Deferred.makeUnsafe<void>()
  let running = 0
  let most = 0
  const run = Effect.gen(function* () {
    most = Math.max(most, ++running)
    yield* Deferred.await(end)
    running--
    return { status: "success", summary: "held" } as const
  })
  const tool = testTool("test.hold", () => run, { effect: "none" })
  return { tool, most: () => most, letGo: Deferred.succeed(end, undefined) }
}

/** One answer of the model with all these calls, and the agent that runs them. */
const begin = Effect.fnUntraced(function* (wanted: ReadonlyArray<Wanted>, tools: ReadonlyArray<Tool>) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  yield* plane.say("go")
  yield* Effect.forkScoped(runAgent({ plane, script: inOrder(calls(...wanted), says("done")), tools }))
  return plane
})

const results = (plane: MemoryControlPlane) => ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
const holding = (count: number): ReadonlyArray<Wanted> =>
  Array.from({ length: count }, (_, index) => ["test.hold", { index }] as const)

describe("ToolRunner", () => {
  it.effect("runs as many tools as may run, lets as many wait as may wait, and refuses the next (D1, R49)", () =>
    Effect.gen(function* () {
      const { letGo, most, tool } = makeHolder()
      const fit = TOOLS_IN_FLIGHT_MAX + TOOLS_QUEUED_MAX
      const plane = yield* begin(holding(fit + 2), [tool])
      yield* plane.until((events) => ofType(events, "ToolResultCommitted").length === 2)
      for (const { status, summary } of results(plane)) {
        assert.strictEqual(status, "rejected")
        assert.match(summary, /^TOOLS_BUSY: 8 tools are running and too many are already waiting\. Try again/u)
      }
      assert.strictEqual(most(), TOOLS_IN_FLIGHT_MAX)
      yield* letGo
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      assert.strictEqual(results(plane).filter(({ status }) => status === "success").length, fit)
      assert.strictEqual(most(), TOOLS_IN_FLIGHT_MAX)
    })
  )

  it.effect("closes a call as timeout that got no turn within its own time, and never runs it (E12)", () =>
    Effect.gen(function* () {
      const { letGo, tool } = makeHolder()
      let ran = false
      const late = testTool(
        "test.late",
        () =>
          Effect.sync(() => {
            ran = true
            return { status: "success", summary: "ran" } as const
          }),
        { timeout_ms: 1000 }
      )
      const plane = yield* begin([...holding(TOOLS_IN_FLIGHT_MAX), ["test.late", {}]], [tool, late])
      yield* plane.until((events) => ofType(events, "ToolResultCommitted").length === 1)
      const [{ call_id, duration_ms, ...result } = { call_id: "", duration_ms: 0 }] = results(plane)
      assert.deepStrictEqual(result, {
        status: "timeout",
        summary: "test-late was not started: it got no slot within 1000 ms"
      })
      assert.isAtLeast(duration_ms, 1000)
      assert.notInclude(
        ofType(plane.events, "ToolCallCommitted").map(({ payload }) => payload.call_id),
        call_id
      )
      yield* letGo
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      assert.isFalse(ran)
    })
  )

  it.effect("counts the wait for a turn as time of the call (E12)", () =>
    Effect.gen(function* () {
      const wait_ms = 600
      const block = testTool("test.block", () =>
        Effect.as(Effect.sleep(wait_ms), { status: "success", summary: "ended" } as const)
      )
      const slow = testTool(
        "test.slow",
        () => Effect.as(Effect.sleep(wait_ms), { status: "success", summary: "ran" } as const),
        { timeout_ms: 1000 }
      )
      const blocking = Array.from({ length: TOOLS_IN_FLIGHT_MAX }, (_, index) => ["test.block", { index }] as const)
      const plane = yield* begin([...blocking, ["test.slow", {}]], [block, slow])
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      const last = results(plane).at(-1)
      assert.deepStrictEqual([last?.status, last?.summary], ["timeout", "test-slow did not end within 1000 ms"])
    })
  )

  it.effect("puts the hash of a whole output into the event, and cuts what a tool did not cut (R48)", () =>
    Effect.gen(function* () {
      const artifact_ref = "ab".repeat(32)
      const output = { text: "x".repeat(2 * TOOL_RESULT_BYTES_MAX) }
      const long = testTool("test.long", () =>
        Effect.succeed({ status: "success", summary: "long", output, artifact_ref } as const)
      )
      const plane = yield* begin([["test.long", {}]], [long])
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      const [result] = results(plane)
      assert.strictEqual(result?.artifact_ref, artifact_ref)
      assert.isBelow(JSON.stringify(result?.output).length, TOOL_RESULT_BYTES_MAX)
    })
  )
})
