import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"

describe("makeKeyedLock", () => {
  it.effect("runs one at a time for a key, lets other keys pass, and is free again after an interrupt", () =>
    Effect.gen(function* () {
      const locked = yield* makeKeyedLock
      const log: Array<string> = []
      const note = (text: string) => Effect.sync(() => void log.push(text))
      const gate = yield* Deferred.make<void>()
      const start = Effect.forkChild({ startImmediately: true })
      const first = yield* Effect.andThen(Deferred.await(gate), note("first")).pipe(locked("a"), start)
      const second = yield* note("second").pipe(locked("a"), start)
      yield* note("other").pipe(locked("b"))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(second)
      assert.deepStrictEqual(log, ["other", "first", "second"])
      yield* Fiber.join(first)
      const stuck = yield* Effect.never.pipe(locked("a"), start)
      yield* Fiber.interrupt(stuck)
      yield* note("last").pipe(locked("a"))
      assert.strictEqual(log.at(-1), "last")
    })
  )
})
