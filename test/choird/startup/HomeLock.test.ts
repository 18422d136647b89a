import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { lockHome } from "#src/choird/HomeLock.ts"

const HOME = `/nowhere/choir-test-${process.pid}`

describe("HomeLock", () => {
  it.live("lets one choird into a home, tells the other its pid, and is free with the scope's end", () =>
    Effect.gen(function* () {
      const first = yield* Scope.make()
      yield* Scope.provide(lockHome(HOME), first)
      const taken = yield* Effect.flip(lockHome(HOME))
      assert.strictEqual(taken._tag, "HomeTaken")
      assert.match(taken.message, new RegExp(`another choird runs in ${HOME} \\(pid ${process.pid}\\): end it`, "u"))
      yield* lockHome(`${HOME}/other`)
      yield* Scope.close(first, Exit.void)
      yield* lockHome(HOME)
    })
  )
})
