import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, linkSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { holdLockFile, lockHolder } from "#src/shared/files/lockFile.ts"
import { temporaryFolder } from "../../support/engines.ts"

const NO_WAIT = 0

/** A process that takes the lock, says so, and keeps it until it is killed. */
const otherHolder = (path: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const text = `
        import { Effect } from "effect"
        import { holdLockFile } from "#src/shared/files/lockFile.ts"
        const held = Effect.andThen(holdLockFile(process.argv[1], 0), Effect.sync(() => console.log("held")))
        setInterval(() => undefined, 1000)
        Effect.runPromise(Effect.scoped(Effect.andThen(held, Effect.never))).catch((error) => console.log(error._tag))
      `
      const child = spawn(process.execPath, ["--input-type=module", "--eval", text, path], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const [said] = (await once(child.stdout, "data")) as [Buffer]
      return { child, pid: child.pid ?? 0, said: said.toString().trim() }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const lockPath = Effect.map(temporaryFolder, (folder) => join(folder, "a.lock"))

describe("a lock file", () => {
  it.live("is held by one at a time, names its holder, and is gone with the scope", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      assert.deepStrictEqual(yield* lockHolder(path), { held: false, pid: null })
      const first = yield* Scope.make()
      yield* Scope.provide(holdLockFile(path), first)
      assert.deepStrictEqual(yield* lockHolder(path), { held: true, pid: process.pid })
      const taken = yield* Effect.flip(holdLockFile(path, NO_WAIT))
      assert.deepInclude(taken, { _tag: "LockTaken", pid: process.pid })
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      yield* Scope.close(first, Exit.void)
      assert.isFalse(existsSync(path))
      yield* holdLockFile(path, NO_WAIT)
    }).pipe(Effect.scoped)
  )

  it.live("is free the moment its holder is killed, even if another process has the pid that the file names", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      const { child, pid, said } = yield* otherHolder(path)
      assert.strictEqual(said, "held")
      assert.deepStrictEqual(yield* lockHolder(path), { held: true, pid })
      const dead = Effect.promise(() => once(child, "exit"))
      child.kill("SIGKILL")
      yield* dead
      // A pid that lives, as after a reboot or a wrap-around of the numbers.
      writeFileSync(path, `${process.ppid}\n`)
      assert.deepStrictEqual(yield* lockHolder(path), { held: false, pid: null })
      yield* holdLockFile(path, NO_WAIT)
      assert.strictEqual(readFileSync(path, "utf8"), `${process.pid}\n`)
    }).pipe(Effect.scoped)
  )

  it.live("goes to one of many that race for a dead holder's", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      for (let round = 0; round < 3; round++) {
        writeFileSync(path, "4194304\n")
        let holders = 0
        let most = 0
        const work = Effect.gen(function* () {
          holders++
          most = Math.max(most, holders)
          yield* Effect.yieldNow
          holders--
        })
        const racers = Array.from({ length: 8 }, () => Effect.scoped(Effect.andThen(holdLockFile(path, 30_000), work)))
        yield* Effect.all(racers, { concurrency: "unbounded" })
        assert.strictEqual(most, 1)
      }
    }).pipe(Effect.scoped)
  )

  it.live("goes to one of two processes that start at once", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      const said = yield* Effect.all([otherHolder(path), otherHolder(path), otherHolder(path)], { concurrency: 3 })
      assert.deepStrictEqual(said.map((other) => other.said).toSorted(), ["LockTaken", "LockTaken", "held"])
    }).pipe(Effect.scoped)
  )

  it.effect("is lost with its file, and its holder hears of it", () =>
    Effect.gen(function* () {
      for (const replace of [false, true]) {
        const path = yield* lockPath
        const { lost } = yield* holdLockFile(path)
        const ended = yield* Effect.forkScoped(Effect.flip(lost), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isUndefined(ended.pollUnsafe())
        rmSync(path)
        if (replace) writeFileSync(path, "")
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual((yield* Fiber.join(ended))._tag, "LockLost")
      }
    }).pipe(Effect.scoped)
  )

  it.live("follows no link, and a folder that is not there has no holder", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      const target = `${path}.target`
      writeFileSync(target, "untouched")
      symlinkSync(target, path)
      const outcome = yield* Effect.result(holdLockFile(path))
      assert.strictEqual(readFileSync(target, "utf8"), "untouched")
      assert.match(outcome._tag === "Failure" ? outcome.failure.message : "", /it is a symbolic link/u)
      assert.deepStrictEqual(yield* lockHolder(`${path}.d/a.lock`), { held: false, pid: null })
    }).pipe(Effect.scoped)
  )

  it.live("that is released leaves a later holder's file alone", () =>
    Effect.gen(function* () {
      const path = yield* lockPath
      const first = yield* Scope.make()
      yield* Scope.provide(holdLockFile(path), first)
      linkSync(path, `${path}.aside`)
      rmSync(path)
      yield* holdLockFile(path, NO_WAIT)
      yield* Scope.close(first, Exit.void)
      assert.deepStrictEqual(yield* lockHolder(path), { held: true, pid: process.pid })
    }).pipe(Effect.scoped)
  )
})
