import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"

const chaos = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], { encoding: "utf8" })

describe("the command line of a long program", () => {
  it("is told by --help, and what is wrong with one is said in one sentence before the usage", () => {
    const help = chaos("--kills", "x", "--help")
    assert.strictEqual(help.status, 0)
    assert.match(help.stdout, /^npm run chaos -- \[options\]\n/u)
    const wrong = [
      { args: ["--kills", "x"], reason: '--kills takes a number above 0, not "x"' },
      { args: ["--database", "y"], reason: '--database takes one of embedded, server, not "y"' },
      { args: ["--nonsense"], reason: "Unknown option '--nonsense'" }
    ]
    for (const { args, reason } of wrong) {
      const { status, stderr } = chaos(...args)
      assert.strictEqual(status, 2)
      const [first, , third] = stderr.split("\n")
      assert.deepStrictEqual([first?.startsWith(reason), third], [true, "npm run chaos -- [options]"])
    }
  })
})
