import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Repos } from "#src/choird/repos/Repos.ts"
import { isHeld, type RepoFile } from "#src/choird/repos/Tree.ts"
import { makeGitRepo, temporaryFolder } from "../../support/gitRepo.ts"
import { AGENT, reposLayer } from "../../support/images.ts"
import { whyNotRoot } from "../../support/packages.ts"

const GLOBAL = { global: true } as const
const notRoot = whyNotRoot("repositories of another user")

/** A repository with one file, and the snapshots of a fresh home. */
const setup = Effect.gen(function* () {
  const root = yield* temporaryFolder
  const repo = makeGitRepo(join(root, "repo"))
  const first = repo.commit({ "a.txt": "1" })
  const { snapshot } = yield* Effect.provide(Repos, reposLayer(join(root, "home")))
  const at = (ref: string) => snapshot(GLOBAL, { url: repo.path, ref }, { held: () => true })
  return { root, repo, first, snapshot, at, clone: join(root, "home/repos/global") }
})

const texts = (files: ReadonlyArray<RepoFile>) =>
  Object.fromEntries(files.filter(isHeld).map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]))

describe.concurrent("Repos", () => {
  it.effect("reads the newest commit of a branch, and its bits and bytes", () =>
    Effect.gen(function* () {
      const { repo, first, at } = yield* setup
      assert.strictEqual((yield* at("main")).commit, first)
      const second = repo.commit({ "a.txt": "2", run: "#!/bin/sh\n", empty: "", "ü/b.txt": "\0\n" })
      const { commit, files, stale } = yield* at("main")
      assert.deepStrictEqual([commit, stale], [second, false])
      assert.deepStrictEqual(texts(files), { "a.txt": "2", run: "#!/bin/sh\n", empty: "", "ü/b.txt": "\0\n" })
      assert.deepStrictEqual(
        files.filter(({ executable }) => executable).map(({ path }) => path),
        ["run"]
      )
    })
  )

  it.effect("takes a branch before a tag, an annotated tag's commit, and a full commit id", () =>
    Effect.gen(function* () {
      const { repo, first, at } = yield* setup
      repo.git(["tag", "-a", "v1", "-m", "v1", first])
      repo.git(["tag", "both", first])
      const second = repo.commit({ "a.txt": "2" })
      repo.git(["branch", "both", second])
      assert.strictEqual((yield* at("v1")).commit, first)
      assert.strictEqual((yield* at("both")).commit, second)
      assert.strictEqual((yield* at(first)).commit, first)
      assert.strictEqual((yield* at("v1")).commit, first)
    })
  )

  it.effect("clones without history and hooks, and leaves nothing else below repos", () =>
    Effect.gen(function* () {
      const { repo, snapshot, root } = yield* setup
      repo.commit({ "a.txt": "2" })
      yield* snapshot({ agent_id: AGENT }, { url: repo.path, ref: "main" })
      const clone = join(root, "home/repos/agents", AGENT)
      assert.isFalse(existsSync(join(clone, "hooks")))
      assert.strictEqual(repo.git(["--git-dir", clone, "rev-list", "--all", "--count"]), "1")
    })
  )

  it.effect("uses an earlier clone of an unreachable repository, flagged stale (D42)", () =>
    Effect.gen(function* () {
      const { repo, first, at } = yield* setup
      yield* at("main")
      renameSync(repo.path, `${repo.path}.away`)
      const { commit, files, stale, warning } = yield* at("main")
      assert.deepStrictEqual([commit, stale, texts(files)], [first, true, { "a.txt": "1" }])
      assert.match(warning ?? "", /^global repository: cannot fetch .* The clone of an earlier fetch is used/u)
      renameSync(`${repo.path}.away`, repo.path)
      assert.isFalse((yield* at("main")).stale)
    })
  )

  it.effect("fails for an unreachable repository that was never fetched with this url and ref (D42)", () =>
    Effect.gen(function* () {
      const { repo, at, snapshot } = yield* setup
      yield* at("main")
      rmSync(repo.path, { recursive: true })
      const error = yield* Effect.flip(at("other"))
      assert.strictEqual(error._tag, "FetchFailed")
      assert.strictEqual(
        (yield* Effect.flip(snapshot(GLOBAL, { url: `${repo.path}2`, ref: "main" })))._tag,
        "FetchFailed"
      )
    })
  )

  it.effect("says that a branch, a commit or a commit behind a tag is not there, also with a clone", () =>
    Effect.gen(function* () {
      const { repo, at } = yield* setup
      yield* at("main")
      repo.git(["tag", "text", repo.blob("no commit")])
      for (const ref of ["gone", "0123456789".repeat(4), "text"]) {
        assert.strictEqual((yield* Effect.flip(at(ref)))._tag, "RefNotFound", ref)
      }
      repo.git(["branch", "-m", "main", "moved"])
      assert.strictEqual((yield* Effect.flip(at("main")))._tag, "RefNotFound")
    })
  )

  it.effect("brings back a clone that a death left aside, and clears half made ones", () =>
    Effect.gen(function* () {
      const { repo, first, at, clone, root } = yield* setup
      yield* at("main")
      renameSync(clone, join(root, "home/repos/.global.old"))
      mkdirSync(join(root, "home/repos/.global.new-left/clone"), { recursive: true })
      rmSync(repo.path, { recursive: true })
      const { commit, stale } = yield* at("main")
      assert.deepStrictEqual([commit, stale], [first, true])
      assert.isFalse(existsSync(join(root, "home/repos/.global.new-left")))
    })
  )

  it.effect("makes a damaged clone again", () =>
    Effect.gen(function* () {
      const { first, at, clone } = yield* setup
      yield* at("main")
      rmSync(join(clone, "objects"), { recursive: true })
      mkdirSync(join(clone, "objects"))
      const { commit, files, stale } = yield* at("main")
      assert.deepStrictEqual([commit, stale, texts(files)], [first, false, { "a.txt": "1" }])
    })
  )

  it.effect("keeps the clone of the last good commit when a new one is refused (R75)", () =>
    Effect.gen(function* () {
      const { repo, first, at, clone } = yield* setup
      yield* at("main")
      repo.commit([{ path: "link", content: "/etc/passwd", mode: "120000" }])
      assert.strictEqual((yield* Effect.flip(at("main")))._tag, "BadRepository")
      assert.strictEqual(repo.git(["--git-dir", clone, "rev-list", "--all"]), first)
    })
  )

  it.effect.skipIf(notRoot !== undefined)(
    "reads a local repository of another user, with and without a work tree",
    () =>
      Effect.gen(function* () {
        const { root, repo, first, snapshot } = yield* setup
        const bare = join(root, "bare")
        repo.git(["clone", "--quiet", "--bare", ".", bare])
        for (const path of [repo.path, bare]) execFileSync("chown", ["-R", "65534:65534", path])
        for (const url of [repo.path, `${repo.path}/`, `${repo.path}/.git`, bare]) {
          assert.strictEqual((yield* snapshot(GLOBAL, { url, ref: "main" })).commit, first, url)
        }
      })
  )

  it.effect("says what to do when a host refuses or is not there", () =>
    Effect.gen(function* () {
      const { snapshot } = yield* setup
      const error = yield* Effect.flip(snapshot(GLOBAL, { url: "https://127.0.0.1:1/x.git", ref: "main" }))
      assert.match(error.message, /^cannot fetch https:\/\/127\.0\.0\.1:1\/x\.git: .*Check the network/u)
    })
  )

  it.effect("serves many at once", () =>
    Effect.gen(function* () {
      const { repo, at, snapshot } = yield* setup
      const agent = snapshot({ agent_id: AGENT }, { url: repo.path, ref: "main" })
      const all = yield* Effect.all([at("main"), agent, at("main"), agent, at("main")], { concurrency: "unbounded" })
      assert.deepStrictEqual(
        all.map(({ stale }) => stale),
        [false, false, false, false, false]
      )
    })
  )
})
