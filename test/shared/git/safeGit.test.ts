import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { NAMED_KEYS, programsOff } from "#src/shared/git/safeGit.ts"
import { temporaryFolder } from "../../support/engines.ts"

/** Every key that names a program by a name of the repository's own. */
const CONFIG = `[filter "a"]
  clean = RUN
  process = RUN
[merge "b"]
  driver = RUN
[diff "c"]
  textconv = RUN
  command = RUN
[hook "d.e"]
  command = RUN
  event = post-checkout
  event = reference-transaction
`

describe("the programs that a repository configures by a name", () => {
  it.effect("are switched off: filters, merge drivers, kinds of diff, and the hooks of a configuration", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "config")
      writeFileSync(file, CONFIG)
      const keys = execFileSync("git", ["config", "--file", file, "--null", "--name-only", "--get-regexp", NAMED_KEYS])
        .toString("utf8")
        .split("\0")
        .filter((key) => key !== "")
      const off = programsOff(keys)
      if (off.type === "refused") return assert.fail(off.why)
      const settings = new Map(off.settings)
      const programs = keys.filter((key) => !key.endsWith(".event"))
      assert.lengthOf(programs, 6)
      for (const key of programs) assert.isTrue(settings.has(key), key)
      assert.isFalse([...settings.values()].includes("RUN"))
      assert.strictEqual(settings.get("hook.d.e.enabled"), "false")
      assert.strictEqual(settings.get("hook.d.e.command"), ":")
    })
  )

  it("are refused where they are too many", () => {
    const keys = Array.from({ length: 65 }, (_, at) => `hook.h${at}.command`)
    assert.strictEqual(programsOff(keys).type, "refused")
    assert.strictEqual(programsOff(keys.slice(1)).type, "off")
  })
})
