import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { makeLogArchive } from "#src/choird/logs/LogArchive.ts"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { temporaryFolder } from "../../support/engines.ts"

const LIMITS = { bytes_max: 10_000, oldest_ms: 0 }
const ARCHIVES_MAX = 10

const made = Effect.map(temporaryFolder, (home) => {
  const folder = join(home, "logs", "archive", "ada")
  mkdirSync(folder, { recursive: true })
  const archive = makeLogArchive(home, ARCHIVES_MAX)
  /** Puts a log of these words into the archive. */
  const take = (now_ms: number, text: string) =>
    archive.take("ada", now_ms, (at, name) => {
      const path = join(home, "logs", "ada.log")
      writeFileSync(path, text)
      renameSync(path, `${descriptorPath(at)}/${name}`)
      return Buffer.byteLength(text)
    })
  return { home, folder, archive, take, names: () => readdirSync(folder).toSorted() }
})

const compressAll = (archive: ReturnType<typeof makeLogArchive>) =>
  Effect.repeat(archive.compressNext, { while: (more) => more })

const DAY_MS = 86_400_000

describe("LogArchive", () => {
  it.live("leaves nothing of a compression that fails, and goes on with the others", () =>
    Effect.gen(function* () {
      const { archive, folder, names } = yield* made
      // It can be opened and not read.
      mkdirSync(join(folder, "2026-01-01T00-00-00.000Z.log"))
      writeFileSync(join(folder, "2026-01-02T00-00-00.000Z.log"), "whole\n")
      archive.scan()
      yield* compressAll(archive)
      assert.deepStrictEqual(names(), ["2026-01-01T00-00-00.000Z.log", "2026-01-02T00-00-00.000Z.log.gz"])
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.live("finishes at the next start what a death left at any point", () =>
    Effect.gen(function* () {
      const { archive, folder, names } = yield* made
      const file = (name: string, bytes: string | Buffer) => writeFileSync(join(folder, name), bytes)
      file("2026-01-01T00-00-00.000Z.log", "renamed only\n")
      file("2026-01-02T00-00-00.000Z.log", "half compressed\n")
      file("2026-01-02T00-00-00.000Z.log.gz.part", gzipSync("half compressed\n").subarray(0, 10))
      file("2026-01-03T00-00-00.000Z.log", "not yet removed\n")
      file("2026-01-03T00-00-00.000Z.log.gz", gzipSync("not yet removed\n"))
      file("notes.txt", "an operator's\n")
      archive.scan()
      yield* compressAll(archive)
      assert.deepStrictEqual(names(), [
        "2026-01-01T00-00-00.000Z.log.gz",
        "2026-01-02T00-00-00.000Z.log.gz",
        "2026-01-03T00-00-00.000Z.log.gz",
        "notes.txt"
      ])
      const texts = names()
        .slice(0, 3)
        .map((name) => gunzipSync(readFileSync(join(folder, name))).toString())
      assert.deepStrictEqual(texts, ["renamed only\n", "half compressed\n", "not yet removed\n"])
    })
  )

  it.live("names archives in the order in which they were written, whatever the clock does", () =>
    Effect.gen(function* () {
      const { archive, names, take } = yield* made
      take(5000, "a")
      take(5000, "b")
      take(10, "c")
      assert.deepStrictEqual(names(), [
        "1970-01-01T00-00-05.000Z.log",
        "1970-01-01T00-00-05.001Z.log",
        "1970-01-01T00-00-05.002Z.log"
      ])
      yield* compressAll(archive)
      take(5000, "d")
      assert.strictEqual(names().at(-1), "1970-01-01T00-00-05.003Z.log")
    })
  )

  it.live("removes the oldest archives beyond the limit of bytes, and no other (R50)", () =>
    Effect.gen(function* () {
      const { archive, names, take } = yield* made
      for (const day of [1, 2, 3]) take(day * DAY_MS, "x".repeat(1000))
      archive.trim(7000, LIMITS)
      assert.strictEqual(names().length, 3)
      archive.trim(7001, LIMITS)
      assert.deepStrictEqual(names(), ["1970-01-03T00-00-00.000Z.log", "1970-01-04T00-00-00.000Z.log"])
      archive.trim(10_001, LIMITS)
      assert.deepStrictEqual(names(), [])
    })
  )

  it.live("removes archives that are older than they are kept, and with a dry run none", () =>
    Effect.gen(function* () {
      const { archive, names, take } = yield* made
      for (const day of [1, 2, 3]) take(day * DAY_MS, "x".repeat(1000))
      const old = { bytes_max: 10_000, oldest_ms: 2 * DAY_MS }
      assert.deepStrictEqual(archive.trim(0, old, true), { removed: 1, bytes: 1000 })
      assert.strictEqual(names().length, 3)
      assert.deepStrictEqual(archive.trim(0, old), { removed: 1, bytes: 1000 })
      assert.deepStrictEqual(names(), ["1970-01-03T00-00-00.000Z.log", "1970-01-04T00-00-00.000Z.log"])
    })
  )

  it.live("removes the oldest archives beyond their number", () =>
    Effect.gen(function* () {
      const { archive, folder, names } = yield* made
      for (let index = 0; index <= 10; index += 1)
        writeFileSync(join(folder, `${new Date(index).toISOString().replaceAll(":", "-")}.log.gz`), "")
      archive.scan()
      archive.trim(0, LIMITS)
      assert.strictEqual(names().length, 10)
      assert.strictEqual(names()[0], "1970-01-01T00-00-00.001Z.log.gz")
    })
  )

  it.live("follows no link out of the logs, and goes on after one that it cannot compress", () =>
    Effect.gen(function* () {
      const { archive, folder, home, names } = yield* made
      writeFileSync(join(home, "target"), "secret\n")
      symlinkSync(join(home, "target"), join(folder, "2026-01-01T00-00-00.000Z.log"))
      writeFileSync(join(folder, "2026-01-02T00-00-00.000Z.log"), "fine\n")
      mkdirSync(join(home, "elsewhere"))
      symlinkSync(join(home, "elsewhere"), join(home, "logs", "archive", "eve"))
      archive.scan()
      yield* compressAll(archive)
      assert.deepStrictEqual(names(), ["2026-01-01T00-00-00.000Z.log", "2026-01-02T00-00-00.000Z.log.gz"])
      assert.throws(() => archive.take("eve", 0, () => 1))
      assert.isTrue(existsSync(join(home, "target")))
      assert.deepStrictEqual(readdirSync(join(home, "elsewhere")), [])
    })
  )
})
