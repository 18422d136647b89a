import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { baseOf } from "#src/choird/runtime/docker/imageChecks.ts"
import { temporaryFolder } from "../../../support/gitRepo.ts"

const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text), executable: false })

describe("the key of a base", () => {
  it.effect("covers the program and the repository, and not what V8 made of the program", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const program = join(folder, "choir-agent.js")
      const write = (suffix: string, text: string) => writeFileSync(join(folder, `choir-agent${suffix}`), text)
      for (const suffix of [".js", ".code.js", ".cache", ".o200k"]) write(suffix, "one")
      const ask = (repository = "one") =>
        baseOf({ node: process.execPath, program, rg: "/usr/bin/rg" }, [file("more.cache", repository)])
      const { entries, key } = yield* ask()
      assert.includeMembers(
        entries.map(({ name }) => name),
        ["choir-agent.js", "choir-agent.code.js", "choir-agent.cache", "choir-agent.o200k"]
      )
      write(".cache", "compiled anew")
      assert.strictEqual((yield* ask()).key, key)
      assert.notStrictEqual((yield* ask("two")).key, key)
      write(".code.js", "two")
      assert.notStrictEqual((yield* ask()).key, key)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
