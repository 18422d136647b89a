import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { type Archive, archivesBeyond, makeLogArchive } from "#src/choird/logs/LogArchive.ts"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { temporaryFolder } from "../../support/engines.ts"

const DAY_MS = 86_400_000
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

/** Archives such as `ada:1:40`, ada's of the first day with 40 bytes, the oldest first. */
const archivesOf = (text: string) =>
  text
    .split(" ")
    .map((each): Archive => {
      const [source = "", day, bytes] = each.split(":")
      return { source, stem: new Date(Number(day) * DAY_MS).toISOString(), bytes: Number(bytes), plain: false }
    })
    .toSorted((a, b) => (a.stem < b.stem ? -1 : 1))

const ROOM = { active_bytes: 0, bytes_max: 100, archives_max: 100, oldest_ms: 0 }

const DECISIONS: ReadonlyArray<readonly [string, string, Partial<typeof ROOM>, string]> = [
  ["nothing while all are within the limits", "ada:1:50 bob:2:50", {}, ""],
  ["the oldest of the largest", "bob:1:10 ada:2:40 ada:3:40 ada:4:40", {}, "ada:2"],
  ["of whichever is the largest by then", "ada:1:30 ada:2:30 bob:3:30 bob:4:29", { bytes_max: 70 }, "ada:1 bob:3"],
  ["all of a flood before one line of others", "bob:1:10 eve:2:60 eve:3:60", { bytes_max: 20 }, "eve:2 eve:3"],
  ["no line of choird while it has half of the room", "choird:1:50 ada:2:40 ada:3:20", {}, "ada:2"],
  ["choird's oldest beyond that half", "choird:1:30 choird:2:30 ada:3:50", {}, "choird:1"],
  ["choird's where nobody else has anything", "choird:1:30 choird:2:30", { active_bytes: 60 }, "choird:1"],
  ["room for what is still written", "ada:1:40 bob:2:30", { active_bytes: 50 }, "ada:1"],
  ["the source with most files beyond their number", "bob:1:90 ada:2:1 ada:3:1", { archives_max: 2 }, "ada:2"],
  [
    "everything that is too old, whoever has it",
    "choird:1:1 bob:2:1 ada:3:1",
    { oldest_ms: 3 * DAY_MS },
    "choird:1 bob:2"
  ],
  ["all of them, where even that is not enough", "ada:1:40 choird:2:40", { active_bytes: 200 }, "ada:1 choird:2"]
]

describe("the archives beyond the limits of all logs", () => {
  for (const [what, archives, limits, gone] of DECISIONS)
    it(`are ${what}`, () => {
      const named = archivesBeyond(archivesOf(archives), { ...ROOM, ...limits }).map(
        ({ source, stem }) => `${source}:${Date.parse(stem) / DAY_MS}`
      )
      assert.strictEqual(named.join(" "), gone)
    })

  it.live("leave an agent its log while another fills the room", () =>
    Effect.gen(function* () {
      const { archive, home, take } = yield* made
      const name = "1970-01-01T00-00-00.001Z.log"
      mkdirSync(join(home, "logs", "archive", "bob"))
      writeFileSync(join(home, "logs", "archive", "bob", name), "evidence\n")
      archive.scan()
      for (let at = 1; at <= 8; at += 1) {
        take(at * DAY_MS, "x".repeat(4000))
        archive.trim(0, LIMITS)
      }
      assert.deepStrictEqual(readdirSync(join(home, "logs", "archive", "bob")), [name])
    })
  )
})

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
