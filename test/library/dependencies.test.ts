/** The table of packages in docs/evidence/security.md says what the package has, and why. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

const text = (name: string) => readFileSync(join(packageFolder, name), "utf8")

const rows = [
  ...text("docs/evidence/security.md").matchAll(
    /^\| `([^`]+)` +\| (\d+\.\d+\.\d+) +\| (\S+) +\| (.+?) +\| (.+?) +\|$/gmu
  )
]

/** Packages below them that read what servers send. */
const READING = ["undici"]
const { packages } = JSON.parse(text("package-lock.json")) as {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>
}

describe("the table of packages", () => {
  it("has a row for each dependency at its version, and for what reads servers' answers below them", () => {
    const { dependencies, optionalDependencies } = JSON.parse(text("package.json")) as Readonly<
      Record<"dependencies" | "optionalDependencies", Readonly<Record<string, string>>>
    >
    assert.deepStrictEqual(Object.fromEntries(rows.map(([, name = "", version]) => [name, version])), {
      ...dependencies,
      ...optionalDependencies,
      ...Object.fromEntries(READING.map((name) => [name, packages[`node_modules/${name}`]?.version]))
    })
  })

  it("says of each when it was released, what it is for and why it stays", () => {
    for (const [, name = "", , date = "", purpose = "", reason = ""] of rows) {
      assert.match(date, /^20\d\d-[01]\d-[0-3]\d$/u, name)
      assert.isNotEmpty(purpose, name)
      assert.isNotEmpty(reason, name)
    }
  })
})
