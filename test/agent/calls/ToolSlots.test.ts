import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { coreLane, EDGE, JobName } from "#schema/Ids.ts"
import { makeToolSlots } from "#src/agent/calls/ToolSlots.ts"

const WAIT_MS = 1000
const start = Effect.forkChild({ startImmediately: true })

/** A tool that runs until it is told to end. */
const tool = (log: Array<string>, name: string) => {
  const end = Deferred.makeUnsafe<void>()
  const run = Effect.andThen(
    Effect.sync(() => void log.push(name)),
    Deferred.await(end)
  )
  return { run, end: Deferred.succeed(end, undefined) }
}

describe("ToolSlots", () => {
  it.effect("runs so many at once and the others in the order in which they came (D1)", () =>
    Effect.gen(function* () {
      const slots = makeToolSlots({ running_max: 2, reserved: 0, queued_max: 10 })
      const log: Array<string> = []
      const tools = ["a", "b", "c", "d"].map((name) => tool(log, name))
      const fibers = yield* Effect.forEach(tools, ({ run }) => start(slots.run(EDGE, WAIT_MS, run)))
      assert.deepStrictEqual(log, ["a", "b"])
      yield* tools[1]?.end ?? Effect.void
      yield* Effect.yieldNow
      assert.deepStrictEqual(log, ["a", "b", "c"])
      yield* tools[0]?.end ?? Effect.void
      yield* Effect.yieldNow
      assert.deepStrictEqual(log, ["a", "b", "c", "d"])
      yield* Effect.forEach(tools, ({ end }) => end)
      yield* Fiber.joinAll(fibers)
    })
  )

  it.effect("refuses one more than may wait, and takes it again when one has left (R49)", () =>
    Effect.gen(function* () {
      const slots = makeToolSlots({ running_max: 1, reserved: 0, queued_max: 2 })
      const [first, second, third] = yield* Effect.forEach([1, 2, 3], () =>
        start(slots.run(EDGE, WAIT_MS, Effect.never))
      )
      const refused = yield* Effect.flip(slots.run(EDGE, WAIT_MS, Effect.void))
      assert.deepStrictEqual([refused.reason, refused.waited_ms], ["full", 0])
      assert.match(refused.message, /^TOOLS_BUSY: 1 tools are running and too many/u)
      if (second !== undefined) yield* Fiber.interrupt(second)
      const fourth = yield* start(slots.run(EDGE, WAIT_MS, Effect.succeed("ran")))
      for (const fiber of [first, third]) if (fiber !== undefined) yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Fiber.join(fourth), "ran")
    })
  )

  it.effect("gives up a wait at its deadline, and the place in the queue with it (E12)", () =>
    Effect.gen(function* () {
      const slots = makeToolSlots({ running_max: 1, reserved: 0, queued_max: 1 })
      const holder = yield* start(slots.run(EDGE, WAIT_MS, Effect.never))
      const late = yield* start(Effect.flip(slots.run(EDGE, WAIT_MS, Effect.void)))
      yield* TestClock.adjust(WAIT_MS - 1)
      assert.isUndefined(late.pollUnsafe())
      yield* TestClock.adjust(1)
      const refused = yield* Fiber.join(late)
      assert.deepStrictEqual([refused.reason, refused.waited_ms], ["late", WAIT_MS])
      const next = yield* start(slots.run(EDGE, WAIT_MS, Effect.succeed("ran")))
      yield* Fiber.interrupt(holder)
      assert.strictEqual(yield* Fiber.join(next), "ran")
    })
  )

  it.effect("hands its turn on however a tool ends", () =>
    Effect.gen(function* () {
      const slots = makeToolSlots({ running_max: 1, reserved: 0, queued_max: 10 })
      for (const end of [Effect.void, Effect.fail("no"), Effect.die("bug"), Effect.interrupt])
        yield* Effect.exit(slots.run(EDGE, WAIT_MS, end))
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(slots.run(EDGE, 0, Effect.void))))
    })
  )

  it.effect("keeps slots for edge that jobs never take, and a queue that they cannot fill", () =>
    Effect.gen(function* () {
      const job = coreLane(JobName.make("work"))
      const slots = makeToolSlots({ running_max: 3, reserved: 1, queued_max: 1 })
      const log: Array<string> = []
      const tools = ["a", "b", "c"].map((name) => tool(log, name))
      const [first] = yield* Effect.forEach(tools, ({ run }) => start(slots.run(job, WAIT_MS, run)))
      assert.deepStrictEqual(log, ["a", "b"])
      assert.strictEqual((yield* Effect.flip(slots.run(job, WAIT_MS, Effect.void))).reason, "full")
      const held = yield* start(slots.run(EDGE, WAIT_MS, Effect.never))
      const behind = yield* start(slots.run(EDGE, WAIT_MS, Effect.succeed("ran")))
      assert.isUndefined(behind.pollUnsafe())
      yield* Fiber.interrupt(held)
      assert.strictEqual(yield* Fiber.join(behind), "ran")
      assert.deepStrictEqual(log, ["a", "b"])
      if (first !== undefined) yield* Fiber.interrupt(first)
      assert.deepStrictEqual(log, ["a", "b", "c"])
    })
  )

  it.effect("loses no turn when waiters are interrupted while turns are handed on", () =>
    Effect.gen(function* () {
      const slots = makeToolSlots({ running_max: 2, reserved: 0, queued_max: 100 })
      for (let round = 0; round < 50; round++) {
        const fibers = yield* Effect.forEach(Array.from({ length: 20 }), () =>
          start(slots.run(EDGE, WAIT_MS, Effect.yieldNow))
        )
        yield* Effect.forEach(
          fibers.filter((_, index) => index % 3 === round % 3),
          Fiber.interrupt,
          { concurrency: "unbounded" }
        )
        yield* Effect.forEach(fibers, Fiber.await)
      }
      const both = yield* Effect.forEach([1, 2], () => start(slots.run(EDGE, 0, Effect.never)))
      assert.deepStrictEqual(
        both.map((fiber) => fiber.pollUnsafe()),
        [undefined, undefined]
      )
      yield* Effect.forEach(both, Fiber.interrupt)
    })
  )
})
