import { lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem } from "effect"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"
import { temporaryFolder } from "../../support/engines.ts"

/** A folder with one file of text "old". */
const oldFile = Effect.map(temporaryFolder, (folder) => {
  const place = join(folder, "config.json")
  writeFileSync(place, "old", { mode: 0o644 })
  return { folder, place }
})

const assertUntouched = ({ folder, place }: Effect.Success<typeof oldFile>) => {
  assert.strictEqual(readFileSync(place, "utf8"), "old")
  assert.deepStrictEqual(readdirSync(folder), ["config.json"])
}

/** The file system of the host, with parts of it replaced. */
const hostWith = (change: (fs: FileSystem.FileSystem) => Partial<FileSystem.FileSystem>) =>
  Effect.updateService(FileSystem.FileSystem, (fs) => ({ ...fs, ...change(fs) }))

describe("writing a file whole", () => {
  it.effect("replaces the text, for the owner alone whatever the old mode was, and leaves no other file", () =>
    Effect.gen(function* () {
      const { folder, place } = yield* oldFile
      yield* writeWhole(place, "new ☂")
      assert.strictEqual(readFileSync(place, "utf8"), "new ☂")
      assert.strictEqual(statSync(place).mode & 0o777, 0o600)
      assert.deepStrictEqual(readdirSync(folder), ["config.json"])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("creates the file with the mode that it is given", () =>
    Effect.gen(function* () {
      const place = join(yield* temporaryFolder, "choird.service")
      yield* writeWhole(place, "[Unit]", 0o644)
      assert.strictEqual(statSync(place).mode & 0o777, 0o644)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("keeps the bytes and then the name: the file is synced before the rename, and its folder after it", () =>
    Effect.gen(function* () {
      const { folder, place } = yield* oldFile
      const steps: Array<string> = []
      const watched = hostWith((fs) => ({
        open: (path, options) =>
          Effect.map(fs.open(path, options), (file) => ({
            ...file,
            writeAll: (bytes: Uint8Array) => file.writeAll(bytes),
            sync: Effect.tap(file.sync, () =>
              Effect.sync(() => steps.push(path === folder ? "sync folder" : "sync file"))
            )
          })),
        rename: (from, to) => Effect.tap(fs.rename(from, to), () => Effect.sync(() => steps.push("rename")))
      }))
      yield* watched(writeWhole(place, "new"))
      assert.deepStrictEqual(steps, ["sync file", "rename", "sync folder"])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("that fails leaves the old file and no temporary one, and says why in the system's words", () =>
    Effect.gen(function* () {
      const old = yield* oldFile
      const full = hostWith(() => ({
        // A folder in the way is what makes a real rename fail.
        rename: () =>
          FileSystem.FileSystem.pipe(
            Effect.flatMap((fs) => fs.rename(old.folder, join(old.folder, "below"))),
            Effect.provide(NodeFileSystem.layer)
          )
      }))
      assert.match(systemWords(yield* Effect.flip(full(writeWhole(old.place, "new")))), /^EINVAL: /u)
      assertUntouched(old)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("that is interrupted before the rename leaves the old file and no temporary one", () =>
    Effect.gen(function* () {
      const old = yield* oldFile
      const reached = yield* Deferred.make<ReadonlyArray<string>>()
      const stuck = hostWith(() => ({
        rename: () =>
          Effect.andThen(
            Deferred.sync(reached, () => readdirSync(old.folder)),
            Effect.never
          )
      }))
      const writing = yield* Effect.forkChild(stuck(writeWhole(old.place, "new")))
      assert.strictEqual((yield* Deferred.await(reached)).length, 2)
      yield* Fiber.interrupt(writing)
      assertUntouched(old)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("follows no link at its temporary name: it fails, and what the link leads to is unchanged", () =>
    Effect.gen(function* () {
      const old = yield* oldFile
      const victim = join(yield* temporaryFolder, "victim")
      writeFileSync(victim, "of another")
      const planted = hostWith((fs) => ({
        open: (path, options) =>
          Effect.suspend(() => {
            symlinkSync(victim, path)
            return fs.open(path, options)
          })
      }))
      assert.match(systemWords(yield* Effect.flip(planted(writeWhole(old.place, "new")))), /^EEXIST: /u)
      assert.strictEqual(readFileSync(victim, "utf8"), "of another")
      assert.strictEqual(readFileSync(old.place, "utf8"), "old")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("replaces a link at its place and leaves what the link leads to", () =>
    Effect.gen(function* () {
      const { folder, place } = yield* oldFile
      const link = join(folder, "link")
      symlinkSync(place, link)
      yield* writeWhole(link, "new")
      assert.isFalse(lstatSync(link).isSymbolicLink())
      assert.strictEqual(readFileSync(place, "utf8"), "old")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )
})
