import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { bundle, unbundle } from "#src/choirctl/backup/sourceBundles.ts"
import { temporaryFolder } from "../../support/engines.ts"

const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", folder, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args])

/** A repository with one commit of `notes.txt`. */
const makeRepository = (folder: string, ...form: ReadonlyArray<string>) => {
  mkdirSync(folder, { recursive: true })
  git(folder, "init", "--quiet", "--initial-branch=main", ...form)
  writeFileSync(join(folder, "notes.txt"), "committed\n")
  git(folder, "add", "--all")
  git(folder, "commit", "--quiet", "--message=first")
}

const SOURCE = { path: "main", bare: false, empty: false, head: { branch: "main" }, user: {}, uncommitted: 0 }

describe("the bundle of a repository", () => {
  it.live("runs no program that the repository names, and counts its uncommitted files", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const repository = join(folder, "sources/main")
      const ran = join(folder, "ran")
      makeRepository(repository)
      const nested = join(repository, "nested")
      makeRepository(nested)
      git(repository, "add", "nested")
      git(repository, "commit", "--quiet", "--message=second")
      for (const place of [repository, nested]) {
        git(place, "config", "filter.x.clean", `touch ${ran}; cat`)
        git(place, "config", "core.fsmonitor", `touch ${ran}`)
        writeFileSync(join(place, ".gitattributes"), "* filter=x\n")
        writeFileSync(join(place, "notes.txt"), "CHANGED!!\n")
      }
      writeFileSync(join(repository, ".git/info/attributes"), "* filter=x\n")
      writeFileSync(join(repository, "new.txt"), "")
      writeFileSync(join(repository, "staged.txt"), "")
      git(repository, "-c", "filter.x.clean=", "-c", "core.fsmonitor=", "add", "staged.txt")
      assert.isFalse(existsSync(ran))
      const made = yield* bundle(join(folder, "sources"), "main", folder)
      assert.isFalse(existsSync(ran))
      // .gitattributes, new.txt, notes.txt, staged.txt
      assert.strictEqual(made.uncommitted, 4)
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )

  it.live("counts nothing in a clean repository, and every file of one without a commit", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      makeRepository(join(folder, "sources/clean"))
      makeRepository(join(folder, "sources/long"), "--object-format=sha256")
      git(join(folder, "sources"), "init", "--quiet", "fresh")
      for (const name of ["a", "b"]) writeFileSync(join(folder, "sources/fresh", name), "")
      const counts = yield* Effect.forEach(["clean", "long", "fresh"], (path) =>
        Effect.map(bundle(join(folder, "sources"), path, folder), ({ uncommitted }) => uncommitted)
      )
      assert.deepStrictEqual(counts, [0, 0, 2])
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )
})

describe("a repository made again", () => {
  it.live("has the files of its bundle", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      makeRepository(join(folder, "sources/main"))
      const source = yield* bundle(join(folder, "sources"), "main", folder)
      yield* unbundle(source, folder, join(folder, "again"))
      assert.strictEqual(readFileSync(join(folder, "again/notes.txt"), "utf8"), "committed\n")
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )

  it.live("is refused when its bundle leads to a repository of this host, or is something else", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      makeRepository(join(folder, "private"))
      mkdirSync(join(folder, "sources"))
      for (const text of [`gitdir: ${join(folder, "private/.git")}\n`, "", "# v2 git bundle", "# v9 git bundle\n"]) {
        writeFileSync(join(folder, "sources/main.bundle"), text)
        const made = yield* Effect.result(unbundle(SOURCE, folder, join(folder, "again")))
        assert.include(Result.isFailure(made) ? made.failure.message : "made", "no git bundle for sources/main", text)
      }
      assert.deepStrictEqual(readdirSync(folder).toSorted(), ["private", "sources"])
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )
})
