import { write as writeFile, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LOG_WAITING_CHARS_MAX, type LogFile, makeLogFile } from "#src/choird/logs/LogFile.ts"
import { temporaryFolder } from "../../support/engines.ts"

const written = (file: LogFile) => Effect.callback<void>((resume) => file.whenWritten(() => resume(Effect.void)))

/** A disk that takes nothing until it is told to, and refuses what it is told to. */
const makeDisk = () => {
  const held: Array<() => void> = []
  const disk = { stalled: true, full: false, writes: 0 }
  const write = ((descriptor: number, bytes: Buffer, offset: number, done: (...args: Array<unknown>) => void) => {
    disk.writes++
    const go = () => (disk.full ? done(new Error("ENOSPC"), 0) : writeFile(descriptor, bytes, offset, done as never))
    if (disk.stalled) held.push(go)
    else go()
  }) as unknown as typeof writeFile
  const release = () => {
    disk.stalled = false
    for (const go of held.splice(0)) go()
  }
  return { disk, write, release }
}

const setUp = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const made = makeDisk()
  const file = makeLogFile(home, "choird", { lost: (lines) => `lost ${lines}\n`, write: made.write })
  const read = () => readFileSync(join(home, "logs", "choird.log"), "utf8")
  return { ...made, file, read }
})

describe("LogFile", () => {
  it.live("holds nobody up while the disk does, keeps the order, and writes many lines at once", () =>
    Effect.gen(function* () {
      const { disk, file, read, release } = yield* setUp
      const lines = Array.from({ length: 5000 }, (_, index) => `${index}\n`)
      for (const line of lines.slice(0, 2500)) file.append(line, 1)
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => disk.writes > 0 })
      for (const line of lines.slice(2500)) file.append(line, 1)
      release()
      yield* written(file)
      assert.strictEqual(read(), lines.join(""))
      assert.isAtMost(disk.writes, 4)
    }).pipe(Effect.scoped)
  )

  it.live("keeps a bounded number of lines for a disk that stalls, and counts those that it drops", () =>
    Effect.gen(function* () {
      const { file, read, release } = yield* setUp
      const line = `${"x".repeat(1023)}\n`
      const most = LOG_WAITING_CHARS_MAX / line.length
      for (let each = 0; each < most + 7; each++) file.append(line, 1)
      release()
      yield* written(file)
      file.append("after\n", 1)
      yield* written(file)
      assert.isTrue(read().endsWith(`${line}lost 7\nafter\n`) || read().startsWith("lost 7\n"))
      assert.strictEqual(read().split(line).length - 1, most)
    }).pipe(Effect.scoped)
  )

  it.live("counts what a full disk refuses, and tells of it when there is room again", () =>
    Effect.gen(function* () {
      const { disk, file, read, release } = yield* setUp
      disk.full = true
      release()
      file.append("one\ntwo\n", 2)
      yield* written(file)
      disk.full = false
      file.append("three\n", 1)
      yield* written(file)
      assert.strictEqual(read(), "lost 2\nthree\n")
    }).pipe(Effect.scoped)
  )

  it("writes what waits at once when the program ends", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { file, read } = yield* setUp
        file.append("last words\n", 1)
        file.writeNow()
        assert.strictEqual(read(), "last words\n")
      }).pipe(Effect.scoped)
    ))
})
