/** A choird that hangs, or is stopped by a signal: the kernel accepts connections in its name, and nobody answers them. */
import { mkdirSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { homeLockPath } from "#src/shared/files/homeLocks.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const hungChoird = Effect.gen(function* () {
  const home = yield* temporaryFolder
  mkdirSync(join(home, "socks"), { mode: 0o700 })
  const asked = yield* Deferred.make<void>()
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket.on("error", () => undefined).resume())
    Deferred.doneUnsafe(asked, Effect.void)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>(
      (resume) => void server.listen(join(home, "socks", "choird.sock"), () => resume(Effect.void))
    ),
    () =>
      Effect.sync(() => {
        server.close()
        for (const socket of open) socket.destroy()
      })
  )
  return { home, asked: Deferred.await(asked) }
})

describe("a choird that hangs", () => {
  it.effect("does not hold choirctl status up, which says so and what to do", () =>
    Effect.gen(function* () {
      const { asked, home } = yield* hungChoird
      const status = yield* Effect.forkScoped(choirctl(home, ["status", "--json"]))
      yield* asked
      yield* TestClock.adjust("20 seconds")
      const ran = yield* Fiber.join(status)
      assert.strictEqual(ran.code, 75)
      const { error } = document(ran) as { readonly error: { readonly type: string; readonly hint: string } }
      assert.strictEqual(error.type, "CHOIRD_SILENT")
      assert.include(error.hint, `choirctl --home ${home} daemon stop`)
    })
  )

  it.effect("holds up no command without a word", () =>
    Effect.gen(function* () {
      const { asked, home } = yield* hungChoird
      const told: Array<string> = []
      yield* Effect.forkScoped(choirctl(home, ["agent", "stop", "a"], { told }))
      yield* asked
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(told, [])
      yield* TestClock.adjust("1 second")
      assert.match(told.join("\n"), /choird has not answered for 30 s; choirctl is still waiting/u)
    })
  )

  it.effect("is asked to stop by a signal in the end, and daemon stop fails with its pid", () =>
    Effect.gen(function* () {
      const { asked, home } = yield* hungChoird
      // The holder is this process, which is no choird and gets no signal.
      yield* holdLockFile(homeLockPath(home), 1000)
      const stop = yield* Effect.forkScoped(choirctl(home, ["daemon", "stop"]))
      yield* asked
      yield* TestClock.adjust("10 minutes")
      const ran = yield* Fiber.join(stop)
      assert.strictEqual(ran.code, 75)
      assert.include(ran.err, `kill -9 ${process.pid}`)
    })
  )
})
