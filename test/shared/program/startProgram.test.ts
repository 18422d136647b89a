import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { Effect } from "effect"
import { temporaryFolder } from "../../support/gitRepo.ts"

const START = JSON.stringify(join(packageFolder, "src/shared/program/startProgram.ts"))

/** A program that prints its arguments and the folder of its compile cache, in a process with no environment but this. */
const start = (folder: string, env: Readonly<Record<string, string>>, before = "") => {
  const program = join(folder, "program.mjs")
  const code = `
    import { getCompileCacheDir } from "node:module"
    import { startProgram } from ${START}
    ${before}
    const main = (args) => console.log(JSON.stringify([args, getCompileCacheDir() ?? null]))
    await startProgram("choir", async () => ({ main }))`
  writeFileSync(program, code)
  const { status, stderr, stdout } = spawnSync(process.execPath, [program, "status", "--json"], {
    encoding: "utf8",
    env
  })
  return { status, stderr, stdout }
}

const printed = (stdout: string): unknown => JSON.parse(stdout)

describe("the start of a program", () => {
  it.effect("keeps what Node compiled in a folder of the user's own, and nowhere without one", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const args = ["status", "--json"]
      const own = start(folder, { HOME: folder })
      const [, kept] = printed(own.stdout) as [unknown, string]
      assert.isTrue(kept.startsWith(join(folder, ".cache/choir/")), kept)
      const named = start(folder, { HOME: folder, XDG_CACHE_HOME: join(folder, "caches") })
      assert.isTrue((printed(named.stdout) as [unknown, string])[1].startsWith(join(folder, "caches/choir/")))
      assert.deepStrictEqual(printed(start(folder, {}).stdout), [args, null])
    })
  )

  it.effect(
    "ends with 78 and one line under a Node that lacks a security release, before anything else is loaded",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const older = `Object.defineProperty(process.versions, "node", { value: "24.21.0" })`
        const { status, stderr, stdout } = start(folder, {}, older)
        assert.strictEqual(status, 78)
        assert.match(stderr, /^choir: Node 24\.21\.0 lacks a security release\. Choir needs Node 22\.23\.4, [^\n]*\n$/u)
        assert.strictEqual(stdout, "")
      })
  )
})
