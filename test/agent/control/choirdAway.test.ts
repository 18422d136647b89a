/** An agent whose choird takes nothing for a minute: it works on, stops at its bound, and loses nothing (R14). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCompaction, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { REPLICATION_BYTES_MAX } from "#src/agent/control/Replication.ts"

const OUTAGE_MS = 60_000
const STEP_MS = 25

/** Time passes in small steps, between which everybody gets on. */
const pass = (ms: number) =>
  Effect.repeat(Effect.andThen(TestClock.adjust(STEP_MS), Effect.yieldNow), { times: Math.ceil(ms / STEP_MS) - 1 })

/** Turns as long as they have to be, whose windows nobody compacts. */
const config = () => {
  const given = agentConfig({ turn_max_steps: 10_000, message_max_steps: 10_000, max_tool_calls_per_session: 100_000 })
  const small = { ...given.models["small" as never], context_window: 1e9 }
  return { ...given, models: { small } as never, memory: { ...given.memory, compact_at: 1_000_000 } }
}

/**
 * An agent that reads at each step until it is told that it is enough, and then answers. Its model takes 100 ms, its tool returns
 * `bytes`.
 */
const reading = Effect.fnUntraced(function* (bytes: number) {
  // A large window counts its tokens. The vocabulary comes from the disk, in time that no TestClock keeps.
  yield* Effect.flatMap(TokenCount, ({ count }) => count(["warm"])).pipe(Effect.provide(TokenCount.layer))
  const plane = yield* makeMemoryControlPlane
  const seen = { asked: 0, ran: [] as Array<string>, enough: false }
  const script: Script = (messages) =>
    Effect.as(Effect.sleep("100 millis"), undefined).pipe(
      Effect.map(() => {
        if (isCompaction(messages)) return calls(["choir.memory.delta", { mode: "overwrite", summary_update: "Read." }])
        seen.asked += 1
        return seen.enough ? says("it is enough") : calls(["mem.read", { n: seen.asked }])
      })
    )
  const tool = testTool(
    "mem.read",
    ({ call_id }) =>
      Effect.sync(() => {
        seen.ran.push(call_id)
        return { status: "success", summary: `read ${seen.ran.length}`, output: "x".repeat(bytes) } as const
      }),
    { effect: "none" }
  )
  const life = yield* Effect.forkScoped(runAgent({ plane, script, tools: [tool], config: config() }))
  yield* plane.say("read all of it")
  while (ofType(plane.events, "ToolResultCommitted").length < 3) yield* pass(STEP_MS)
  return { plane, seen, life }
})

describe("a choird that is away for 60 s", () => {
  it.effect("is missed by nobody: the agent goes on, and everything arrives afterwards, once and in order (R14)", () =>
    Effect.gen(function* () {
      const { life, plane, seen } = yield* reading(10)
      const before = plane.events.length
      const asked = seen.asked
      yield* plane.away(pass(OUTAGE_MS))
      assert.strictEqual(plane.events.length, before)
      assert.isAtLeast(seen.asked - asked, 200)
      seen.enough = true
      yield* ticking
      yield* plane.until((_, state) => quiet(state) && state.edge.turn === undefined && state.last_inbox_id === 1n)
      const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload.call_id as string)
      assert.deepStrictEqual(results, seen.ran)
      assert.deepStrictEqual(
        plane.events.map(({ rev }) => rev),
        plane.events.map((_, index) => index + 1)
      )
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => payload.text),
        ["it is enough"]
      )
      assert.isUndefined(life.pollUnsafe())
      yield* Fiber.interrupt(life)
    })
  )

  it.effect("stops new model calls at what the agent may hold, and they go on when it is back (R14)", () =>
    Effect.gen(function* () {
      const bytes = 200 * 1024
      const { life, plane, seen } = yield* reading(bytes)
      const asked = seen.asked
      const [half, whole] = yield* plane.away(
        Effect.gen(function* () {
          yield* pass(OUTAGE_MS / 2)
          const half = seen.asked
          yield* pass(OUTAGE_MS / 2)
          return [half, seen.asked] as const
        })
      )
      // One step of work above the bound, and not one call more for the rest of the time.
      assert.isAtLeast(half - asked, Math.floor(REPLICATION_BYTES_MAX / bytes) - 3)
      assert.isAtMost(half - asked, Math.ceil(REPLICATION_BYTES_MAX / bytes) + 1)
      assert.strictEqual(whole, half)
      yield* ticking
      yield* plane.until(() => seen.asked > whole)
      seen.enough = true
      yield* plane.until((_, state) => quiet(state) && state.edge.turn === undefined && state.last_inbox_id === 1n)
      assert.strictEqual(ofType(plane.events, "ToolResultCommitted").length, seen.ran.length)
      assert.strictEqual(new Set(seen.ran).size, seen.ran.length)
      yield* Fiber.interrupt(life)
    })
  )
})
