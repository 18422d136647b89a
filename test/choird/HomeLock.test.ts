import { mkdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { lockHome } from "#src/choird/HomeLock.ts"
import { homeHolder } from "#src/shared/files/homeLocks.ts"
import { temporaryFolder } from "../support/engines.ts"

const serve = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<() => void>((resume) => {
      const server = createServer()
      server.listen(path, () => resume(Effect.succeed(() => void server.close())))
    }),
    (close) => Effect.sync(close)
  )

describe("HomeLock", () => {
  it.live("lets one choird into a home, tells the other its pid, and is free with the scope's end", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const first = yield* Scope.make()
      yield* Scope.provide(lockHome(home), first)
      const taken = yield* Effect.flip(lockHome(home))
      assert.strictEqual(taken._tag, "HomeTaken")
      assert.match(taken.message, new RegExp(`another choird runs in ${home} \\(pid ${process.pid}\\): end it`, "u"))
      yield* lockHome(yield* temporaryFolder)
      yield* Scope.close(first, Exit.void)
      yield* lockHome(home)
    }).pipe(Effect.scoped)
  )

  it.live("is not taken from a choird without a lock file that answers on the operator's socket", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "socks"))
      const earlier = yield* Scope.make()
      yield* Scope.provide(serve(join(home, "socks", "choird.sock")), earlier)
      assert.strictEqual((yield* Effect.flip(Effect.scoped(lockHome(home))))._tag, "HomeTaken")
      assert.deepStrictEqual(yield* homeHolder(home), { held: true, pid: null })
      yield* Scope.close(earlier, Exit.void)
      yield* lockHome(home)
    }).pipe(Effect.scoped)
  )

  it.effect("that is lost ends its holder, and a supervisor starts it again", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const { lost } = yield* lockHome(home)
      const ended = yield* Effect.forkScoped(Effect.flip(lost), { startImmediately: true })
      rmSync(join(home, "choird.lock"))
      yield* TestClock.adjust("2 seconds")
      assert.match((yield* Fiber.join(ended)).message, /choird no longer holds .* choird is shutting down/u)
    }).pipe(Effect.scoped)
  )
})
