import { spawnSync } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agentCommand } from "#src/choird/runtime/AgentCommand.ts"
import { INSIDE } from "#src/choird/runtime/sandbox/SandboxPlan.ts"
import { loadProgram } from "#src/shared/program/compiledProgram.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { temporaryFolder } from "../../support/gitRepo.ts"

const place = globalThis as { ran?: unknown }
const codeOf = (value: number) =>
  `(function (require, __filename) { globalThis.ran = [${value}, require("node:path").basename(__filename)] })`

describe("a program that was compiled before", () => {
  it.effect(
    "is taken as it is, and compiled again when it changed, when its form is damaged, or when there is none",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const [program, code, cache] = ["p.js", "p.code.js", "p.cache"].map((name) => join(folder, name)) as [
          string,
          string,
          string
        ]
        const ran = () => {
          delete place.ran
          const loaded = loadProgram(program)
          loaded.run()
          return { ...loaded, ran: place.ran }
        }
        writeFileSync(code, codeOf(1))
        const first = ran()
        assert.deepStrictEqual([first.was_compiled, first.ran], [false, [1, "p.code.js"]])
        first.keep()
        const second = ran()
        assert.deepStrictEqual([second.was_compiled, second.ran], [true, [1, "p.code.js"]])
        writeFileSync(code, codeOf(1000))
        const changed = ran()
        assert.deepStrictEqual([changed.was_compiled, changed.ran], [false, [1000, "p.code.js"]])
        writeFileSync(cache, "nonsense")
        const damaged = ran()
        assert.deepStrictEqual([damaged.was_compiled, damaged.ran], [false, [1000, "p.code.js"]])
        rmSync(cache)
        assert.isFalse(ran().was_compiled)
      })
  )

  it("is the agent's, as the build left it, under the flags that an agent has", () => {
    const flags = agentCommand(INSIDE, undefined, [])
    const look = `
      import { loadProgram } from ${JSON.stringify(join(packageFolder, "src/shared/program/compiledProgram.ts"))}
      console.log(loadProgram(${JSON.stringify(join(packageFolder, "dist/choir-agent.js"))}).was_compiled)`
    const { stderr, stdout } = spawnSync(
      process.execPath,
      [...flags.slice(1, flags.indexOf(INSIDE.program)), "--input-type=module", "--eval", look],
      { encoding: "utf8" }
    )
    assert.strictEqual(stdout, "true\n", stderr)
  })
})
