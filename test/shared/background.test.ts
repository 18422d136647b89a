import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { logDeath, restarted } from "#src/shared/background.ts"

/** The lines of a log, and the logger that writes them. */
const makeLog = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ cause, logLevel, message }) => {
    lines.push(`${logLevel}: ${String(message)}: ${String(Cause.squash(cause))}`)
  })
  return { lines, layer: Logger.layer([logger]) }
}

describe("work in the background", () => {
  it.effect(
    "logs its death with its name and the cause, failures and defects alike, and nothing of an interruption",
    () =>
      Effect.gen(function* () {
        const { layer, lines } = makeLog()
        const run = <A>(work: Effect.Effect<A, string>) =>
          Effect.provide(Effect.exit(logDeath("the watch")(work)), layer)
        assert.isTrue(Exit.isFailure(yield* run(Effect.die("planted"))))
        assert.deepStrictEqual(yield* run(Effect.fail("refused")), Exit.fail("refused"))
        assert.deepStrictEqual(yield* run(Effect.succeed(1)), Exit.succeed(1))
        const waiting = yield* Effect.forkChild(run(Effect.never), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        assert.deepStrictEqual(lines, ["Error: the watch died: planted", "Error: the watch died: refused"])
      })
  )

  it.effect("begins a loop that died again, after longer and longer pauses, and ends it with its scope", () =>
    Effect.gen(function* () {
      const { layer, lines } = makeLog()
      let begun = 0
      const worked = yield* Deferred.make<void>()
      const loop = Effect.suspend(() => {
        begun += 1
        if (begun < 3) return Effect.die(`planted ${begun}`)
        return Effect.andThen(Deferred.succeed(worked, undefined), Effect.never)
      })
      const fiber = yield* Effect.forkChild(Effect.provide(restarted("the loop")(loop), layer), {
        startImmediately: true
      })
      assert.deepStrictEqual(lines, ["Error: the loop died: planted 1"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(lines, ["Error: the loop died: planted 1", "Error: the loop died: planted 2"])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(begun, 2)
      yield* TestClock.adjust("1 second")
      yield* Deferred.await(worked)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(begun, 3)
      assert.lengthOf(lines, 2)
    })
  )
})
