import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeTurns, TURN_MS_MAX } from "#src/agent/process/Turns.ts"

/** Turns, and work that begins in them and lasts until it is let go. */
const working = () => {
  const inTurn = makeTurns()
  const began: Array<string> = []
  const begin = Effect.fnUntraced(function* (name: string, alone: boolean) {
    const done = yield* Deferred.make<void>()
    const work = Effect.andThen(
      Effect.sync(() => void began.push(name)),
      Deferred.await(done)
    )
    const fiber = yield* Effect.forkChild(inTurn(alone, work), { startImmediately: true })
    return { fiber, end: Effect.andThen(Deferred.succeed(done, undefined), Fiber.await(fiber)) }
  })
  return { began, begin }
}

describe("turns of commands that are not kept apart", () => {
  it.effect("let one with secrets begin once none runs, and none begin while it does", () =>
    Effect.gen(function* () {
      const { began, begin } = working()
      const [first, second] = [yield* begin("first", false), yield* begin("second", false)]
      const secret = yield* begin("secret", true)
      const third = yield* begin("third", false)
      assert.deepStrictEqual(began, ["first", "second"])
      yield* first.end
      assert.deepStrictEqual(began, ["first", "second"])
      yield* second.end
      assert.deepStrictEqual(began, ["first", "second", "secret"])
      const another = yield* begin("another secret", true)
      yield* secret.end
      assert.deepStrictEqual(began, ["first", "second", "secret", "third"])
      yield* third.end
      yield* another.end
      assert.strictEqual(began.at(-1), "another secret")
    })
  )

  it.effect("end the wait after a time, with words that say what runs", () =>
    Effect.gen(function* () {
      const { began, begin } = working()
      const first = yield* begin("first", false)
      const secret = yield* begin("secret", true)
      const behind = yield* begin("behind", false)
      yield* TestClock.adjust(TURN_MS_MAX)
      const late = yield* Effect.flip(Fiber.join(secret.fiber))
      assert.match(late.message, /^another command still runs, and on this host a tool with secrets starts only when/u)
      // What waited behind it begins in that moment.
      assert.deepStrictEqual(began, ["first", "behind"])
      yield* first.end
      yield* behind.end
      const alone = yield* begin("alone", true)
      const last = yield* begin("last", false)
      yield* TestClock.adjust(TURN_MS_MAX)
      const refused = yield* Effect.flip(Fiber.join(last.fiber))
      assert.match(refused.message, /^a tool with secrets waits or runs, and on this host no command starts beside it/u)
      yield* alone.end
    })
  )

  it.effect("leave nothing behind of one that is interrupted while it waits or runs", () =>
    Effect.gen(function* () {
      const { began, begin } = working()
      const first = yield* begin("first", false)
      const secret = yield* begin("secret", true)
      const second = yield* begin("second", false)
      yield* Fiber.interrupt(secret.fiber)
      assert.deepStrictEqual(began, ["first", "second"])
      yield* Fiber.interrupt(first.fiber)
      yield* Fiber.interrupt(second.fiber)
      const alone = yield* begin("alone", true)
      assert.isTrue(Exit.isSuccess(yield* alone.end))
    })
  )
})
