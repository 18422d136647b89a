import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join, relative } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Result } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { AGENT, GLOBAL_FILES, makeImageHome } from "../../support/images.ts"

const below = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [relative(folder, path), (statSync(path).mode & 0o7777).toString(8)]
    })
  )

describe("Images", () => {
  it.effect("makes a lost image again of its own commits, whatever the repositories and clones hold by now", () =>
    Effect.gen(function* () {
      const { agent, build, global, images, sources } = yield* makeImageHome
      const image = yield* build()
      const lost = Effect.result(images.remake(AGENT, sources, image))
      assert.isTrue(Result.isSuccess(yield* lost))
      const [base, own] = [global, agent].map((repo) => repo.git(["rev-parse", "main"]))
      global.commit({ ...GLOBAL_FILES, "identity/USER.md": "newer" })
      agent.commit({ "README.md": "newer" })
      yield* build()
      assert.isTrue(Result.isSuccess(yield* lost))
      const origin = Option.getOrThrow(yield* images.origin(AGENT, image.image_version))
      assert.deepStrictEqual([origin.global.commit, origin.agent.commit], [base, own])
      // Neither the clones nor the remote have it any more.
      rmSync(agent.path, { recursive: true })
      const failed = yield* lost
      assert.isTrue(Result.isFailure(failed))
    })
  )

  it.effect("builds the folder `choir/` with modes that an unprivileged uid can read", () =>
    Effect.gen(function* () {
      const { agent, build, global, images } = yield* makeImageHome
      agent.commit({ "identity/SOUL.md": "mine" })
      const umask = process.umask(0o077)
      const image = yield* Effect.ensuring(
        build(),
        Effect.sync(() => process.umask(umask))
      )
      assert.deepStrictEqual(below(image.path), {
        choir: "755",
        "choir/SOUL-CORE.md": "644",
        "choir/SOUL.md": "644",
        "choir/USER.md": "644",
        "choir/skills": "755",
        "choir/skills/_index.json": "644",
        "choir/skills/think.json": "644",
        "choir/tools": "755",
        "choir/tools/agent": "755",
        "choir/tools/global": "755",
        "choir/tools/global/echo": "755",
        "choir/tools/global/echo.json": "644",
        "choir/version.json": "644",
        "origin.json": "600"
      })
      assert.strictEqual(statSync(image.path).mode & 0o777, 0o755)
      assert.strictEqual(readFileSync(join(image.path, "choir/SOUL.md"), "utf8"), "mine")
      const version = yield* images.verify(image.path)
      assert.deepStrictEqual(version, JSON.parse(readFileSync(join(image.path, "choir/version.json"), "utf8")))
      assert.strictEqual(version.global_repo_commit, global.git(["rev-parse", "main"]))
      assert.strictEqual(version.agent_repo_commit, agent.git(["rev-parse", "main"]))
      assert.deepStrictEqual(yield* images.current(AGENT), { image_version: image.image_version, path: image.path })
    })
  )

  it.effect("does not build again while both commits are the same, and tells its steps", () =>
    Effect.gen(function* () {
      const { build, global } = yield* makeImageHome
      const steps: Array<string> = []
      const progress = (step: string) => Effect.sync(() => void steps.push(step))
      const first = yield* build({ progress })
      assert.deepStrictEqual(steps.splice(0), ["fetch global", "fetch agent", "check", "write"])
      const again = yield* build({ progress })
      assert.deepStrictEqual(steps, ["fetch global", "fetch agent", "check"])
      assert.deepStrictEqual([first.built, again.built, again.image_version], [true, false, first.image_version])
      assert.isTrue((yield* build({ force: true })).built)
      global.commit({ ...GLOBAL_FILES, "identity/USER.md": "other" })
      const changed = yield* build()
      assert.isTrue(changed.built)
      assert.notStrictEqual(changed.image_version, first.image_version)
    })
  )

  it.effect("keeps the last three images and those in use, and goes back to an older one", () =>
    Effect.gen(function* () {
      const { agent, build, home, images } = yield* makeImageHome
      const versions: Array<ImageVersion> = []
      for (const text of ["1", "2", "3", "4", "5"]) {
        agent.commit({ "README.md": text })
        versions.push((yield* build({ in_use: versions.slice(0, 1) })).image_version)
      }
      const kept = () => new Set(readdirSync(join(home, "images", AGENT)))
      assert.deepStrictEqual(kept(), new Set<string>(["builds.json", ...versions.toSpliced(1, 1)]))
      agent.commit({ "README.md": "3" })
      assert.isFalse((yield* build()).built)
      assert.strictEqual((yield* images.current(AGENT)).image_version, versions[2])
      assert.deepStrictEqual(kept(), new Set<string>(["builds.json", ...versions.slice(2)]))
    })
  )

  it.effect("does not replace an image in use", () =>
    Effect.gen(function* () {
      const { build } = yield* makeImageHome
      const { image_version } = yield* build()
      const error = yield* Effect.flip(build({ force: true, in_use: [image_version] }))
      assert.strictEqual(error._tag, "ImageInUse")
      assert.isFalse((yield* build({ in_use: [image_version] })).built)
    })
  )

  it.effect("says how to make the first image", () =>
    Effect.gen(function* () {
      const { images } = yield* makeImageHome
      const error = yield* Effect.flip(images.current(AgentId.make("agent-2")))
      assert.match(error.message, /choirctl agent build agent-2/u)
    })
  )

  it.effect("leaves the current image alone when a build fails", () =>
    Effect.gen(function* () {
      const { agent, build, home, images } = yield* makeImageHome
      const { image_version } = yield* build()
      agent.commit({ "tools/x.json": "{" })
      assert.strictEqual((yield* Effect.flip(build()))._tag, "BadRepository")
      assert.strictEqual((yield* images.current(AGENT)).image_version, image_version)
      assert.deepStrictEqual(readdirSync(join(home, "images", AGENT)).sort(), [image_version, "builds.json"].sort())
    })
  )

  it.effect("forgets a list of builds that is not one, and clears what a death left behind", () =>
    Effect.gen(function* () {
      const { build, home, images } = yield* makeImageHome
      const { image_version } = yield* build()
      const folder = join(home, "images", AGENT)
      mkdirSync(join(folder, ".new-left/image"), { recursive: true })
      writeFileSync(join(folder, "builds.json"), `["../../etc"]`)
      assert.strictEqual((yield* Effect.flip(images.current(AGENT)))._tag, "NoImage")
      assert.isFalse((yield* build()).built)
      assert.strictEqual((yield* images.current(AGENT)).image_version, image_version)
      assert.isFalse(existsSync(join(folder, ".new-left")))
    })
  )

  const drifts: ReadonlyArray<[string, (choir: string) => void]> = [
    ["an executable was changed", (choir) => writeFileSync(join(choir, "tools/global/echo"), "#!/bin/sh\nid\n")],
    ["an executable bit was set", (choir) => chmodSync(join(choir, "tools/global/echo.json"), 0o755)],
    ["a tool was added", (choir) => writeFileSync(join(choir, "tools/agent/new"), "")],
    ["a skill was removed", (choir) => rmSync(join(choir, "skills/think.json"))],
    [
      "a tool became a link",
      (choir) => {
        renameSync(join(choir, "tools/global/echo"), join(choir, "echo"))
        symlinkSync("../../echo", join(choir, "tools/global/echo"))
      }
    ],
    ["version.json is gone", (choir) => rmSync(join(choir, "version.json"))],
    [
      "version.json has an unknown key",
      (choir) => {
        const version = JSON.parse(readFileSync(join(choir, "version.json"), "utf8"))
        writeFileSync(join(choir, "version.json"), JSON.stringify({ ...version, extra: 1 }))
      }
    ],
    [
      "version.json names another commit",
      (choir) => {
        const version = JSON.parse(readFileSync(join(choir, "version.json"), "utf8"))
        writeFileSync(join(choir, "version.json"), JSON.stringify({ ...version, agent_repo_commit: "0".repeat(40) }))
      }
    ]
  ]
  it.effect.each(drifts)("sees the drift when %s, and repairs it by a build", ([, change]) =>
    Effect.gen(function* () {
      const { build, images } = yield* makeImageHome
      const { path } = yield* build()
      change(join(path, "choir"))
      assert.strictEqual((yield* Effect.flip(images.verify(path)))._tag, "ImageDrift")
      assert.isTrue((yield* build()).built)
      yield* images.verify(path)
    })
  )

  it.effect("builds one agent's image once when it is asked for twice at a time", () =>
    Effect.gen(function* () {
      const { build } = yield* makeImageHome
      const both = yield* Effect.all([build(), build()], { concurrency: 2 })
      assert.strictEqual(both.filter(({ built }) => built).length, 1)
    })
  )
})
