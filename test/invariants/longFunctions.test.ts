import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "./source.ts"

/** The lines that a function should have at most; the linter allows a hundred. */
const LINES = 70
/** Longer functions that there are. It may only fall. */
const LONG_FUNCTIONS = 13

/** The functions of a folder with more lines, as `file:line:column`. */
const longFunctions = (cwd: string, ...folders: ReadonlyArray<string>): ReadonlyArray<string> => {
  const folder = mkdtempSync(join(tmpdir(), "choir-lines-"))
  try {
    const config = join(folder, "oxlint.json")
    const rules = { "max-lines-per-function": ["error", { max: LINES }] }
    writeFileSync(config, JSON.stringify({ categories: { correctness: "off" }, rules }))
    const linter = join(ROOT, "node_modules/oxlint/bin/oxlint")
    const args = [linter, "--config", config, "--format", "unix", ...folders]
    const { stdout } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" })
    return stdout.split("\n").flatMap((line) => /^(\S+:\d+:\d+): .*too many lines/u.exec(line)?.[1] ?? [])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("functions of more than 70 lines", () => {
  it("get fewer: a further one is divided, and where one was divided the bound falls", () => {
    const found = longFunctions(ROOT, "src", "schema")
    assert.strictEqual(found.length, LONG_FUNCTIONS, found.join("\n"))
  })

  it("are found from the first line too many on", () => {
    const folder = mkdtempSync(join(tmpdir(), "choir-lines-"))
    try {
      const write = (name: string, lines: number) =>
        writeFileSync(join(folder, name), `export const f = () => {\n${"  void 0\n".repeat(lines - 2)}}\n`)
      write("fits.ts", LINES)
      write("long.ts", LINES + 1)
      assert.deepStrictEqual(
        longFunctions(folder, ".").map((place) => place.split(":")[0]),
        ["long.ts"]
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
