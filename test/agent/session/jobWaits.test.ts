/** A job outlives its provider's failures: it waits, says so once, and continues by itself, through a restart too. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { pauseBefore, PROVIDER_WAIT_MS_MAX } from "#src/agent/session/jobWaits.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent } from "../../support/testing/TestAgent.ts"

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Hours pass in a test, so that time goes by in larger steps than elsewhere, and in larger ones for a longer failure. */
const passing = (down_ms: number) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(Math.max(SECOND, down_ms / 1000)), Effect.yieldNow)))
const unreachable: Said = { finish_reason: "error", error: { kind: "unreachable", message: "nobody answers" } }
const refusedKey: Said = {
  finish_reason: "error",
  error: { kind: "http", status: 401, message: "the provider answered 401" }
}

/** A job whose provider fails like this until so long after the start of the test. */
const downFor =
  (down_ms: number, failure: Said, asked: Array<number>): Script =>
  (messages) =>
    Effect.gen(function* () {
      if (!isCore(messages)) {
        const last = messages.at(-1)
        return last?.role === "user" && last.content === "go"
          ? calls(["choir.core.spawn", { job_name: "dig", task_spec: "dig a hole" }])
          : says("fine")
      }
      const now = yield* Clock.currentTimeMillis
      asked.push(now)
      return now - (asked[0] ?? now) < down_ms ? failure : says("dug")
    })

const stopped = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStopped").map(({ payload }) => payload)

const waitLines = (plane: MemoryControlPlane) =>
  ofType(plane.events, "AgentMessage").filter(
    ({ payload }) => payload.text?.includes("waits for the provider") === true
  )

/** The job's times are far shorter than the longest of these failures. */
const config = agentConfig({ per_job_wall_time_ms: 10 * MINUTE })

const through = Effect.fnUntraced(function* (down_ms: number, failure: Said = unreachable) {
  yield* passing(down_ms)
  const plane = yield* makeMemoryControlPlane
  const asked: Array<number> = []
  yield* Effect.forkScoped(runAgent({ plane, config, script: downFor(down_ms, failure, asked) }))
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  return { asked, plane }
})

describe("a job whose provider fails", () => {
  it.effect.each([
    ["12 s", 12 * SECOND, 0],
    ["5 minutes", 5 * MINUTE, 1],
    ["2 hours", 2 * HOUR, 1]
  ] as const)("is completed after a failure of %s, and its user is told of a long one once", ([, down_ms, lines]) =>
    Effect.gen(function* () {
      const { asked, plane } = yield* through(down_ms)
      assert.deepInclude(stopped(plane)[0], { outcome: "completed", result: "dug" })
      const failed = ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.error !== undefined)
      assert.lengthOf(failed, 1, "one failure in the log, however many attempts")
      assert.isAtMost(asked.length, 6 + down_ms / (4 * MINUTE))
      assert.lengthOf(waitLines(plane), lines)
      for (const { payload } of waitLines(plane)) {
        assert.strictEqual(payload.in_reply_to, "1")
        assert.match(
          payload.text ?? "",
          /^dig: waits for the provider since \d\d:\d\d \(nobody answers\)\. It continues by itself/u
        )
      }
    })
  )

  it.effect("ends at once where the failure is for a person to see", () =>
    Effect.gen(function* () {
      const { asked, plane } = yield* through(HOUR, refusedKey)
      assert.lengthOf(asked, 1)
      assert.strictEqual(stopped(plane)[0]?.outcome, "error")
    })
  )

  it.effect("ends after a day, and can be resumed", () =>
    Effect.gen(function* () {
      const { plane } = yield* through(PROVIDER_WAIT_MS_MAX + HOUR)
      assert.strictEqual(stopped(plane)[0]?.outcome, "error")
      assert.isAbove(stopped(plane)[0]?.resumable?.left_ms ?? 0, 9 * MINUTE)
    })
  )

  it.effect("continues its wait after a restart in the middle, and tells its user once", () =>
    Effect.gen(function* () {
      yield* passing(HOUR)
      const plane = yield* makeMemoryControlPlane
      const asked: Array<number> = []
      const script = downFor(HOUR, unreachable, asked)
      const first = yield* Effect.forkChild(runAgent({ plane, config, script }))
      yield* plane.say("go")
      yield* plane.until(() => waitLines(plane).length === 1)
      yield* Fiber.interrupt(first)
      yield* Effect.forkScoped(runAgent({ plane, config, script, epoch: 2 }))
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.deepInclude(stopped(plane)[0], { outcome: "completed", result: "dug" })
      assert.lengthOf(waitLines(plane), 1)
    })
  )

  it.effect("ends when it is cancelled", () =>
    Effect.gen(function* () {
      yield* passing(HOUR)
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, config, script: downFor(HOUR, unreachable, []) }))
      yield* plane.say("go")
      yield* plane.until(() => waitLines(plane).length === 1)
      yield* plane.push({ type: "CancelCore", signal_id: "7" as never, job_name: "dig" as never })
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.strictEqual(stopped(plane)[0]?.outcome, "cancelled")
    })
  )
})

describe("a job whose computer goes off during its model call", () => {
  /** The job's model never answers in the first epochs, each of which ends a minute after the call began. */
  const through = Effect.fnUntraced(function* (offs_ms: ReadonlyArray<number>) {
    const plane = yield* makeMemoryControlPlane
    let asked = 0
    let isUp = false
    const script: Script = (messages) =>
      Effect.suspend(() => {
        if (!isCore(messages)) {
          const last = messages.at(-1)
          return Effect.succeed(
            last?.role === "user" && last.content === "go"
              ? calls(["choir.core.spawn", { job_name: "dig", task_spec: "dig a hole" }])
              : says("fine")
          )
        }
        asked += 1
        return isUp ? Effect.succeed(says("dug")) : Effect.never
      })
    let epoch = 1
    for (const off_ms of offs_ms) {
      const before = asked
      const running = yield* Effect.forkChild(runAgent({ plane, config, script, epoch }))
      if (epoch === 1) yield* plane.say("go")
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(10), Effect.yieldNow))).pipe(
        Effect.andThen(
          Effect.repeat(Effect.yieldNow, {
            until: () => asked > before && ofType(plane.events, "CoreStarted").length === 1
          })
        ),
        Effect.scoped
      )
      yield* Fiber.interrupt(running)
      yield* TestClock.adjust(off_ms)
      epoch += 1
    }
    isUp = true
    yield* passing(SECOND)
    yield* Effect.forkScoped(runAgent({ plane, config, script, epoch }))
    yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
    return plane
  })

  it.effect("continues with the time that it had", () =>
    Effect.gen(function* () {
      const plane = yield* through([8 * HOUR])
      assert.deepInclude(stopped(plane)[0], { outcome: "completed", result: "dug" })
      const output = ofType(plane.events, "ModelOutput").find(({ lane }) => lane !== "edge")
      assert.isAtLeast(output?.payload.prompt?.off_ms ?? 0, 8 * HOUR)
    })
  )

  it.effect("continues after two nights", () =>
    Effect.gen(function* () {
      const plane = yield* through([8 * HOUR, 9 * HOUR])
      assert.deepInclude(stopped(plane)[0], { outcome: "completed", result: "dug" })
    })
  )

  it.effect("ends by its limit after two weeks", () =>
    Effect.gen(function* () {
      const plane = yield* through([336 * HOUR])
      assert.strictEqual(stopped(plane)[0]?.outcome, "budget")
    })
  )
})

describe("the pauses between its attempts", () => {
  it("double up to five minutes", () => {
    assert.deepStrictEqual([0, 1, 2, 6, 7, 100].map(pauseBefore), [5000, 10_000, 20_000, 300_000, 300_000, 300_000])
  })
})
