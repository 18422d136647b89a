/** The tables of docs/evidence/reliability.md: each test that a defect's row names is there, so that a renamed test is not lost. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { parsed, type SyntaxNode, walk } from "../support/syntax.ts"

const ROOT = join(import.meta.dirname, "../..")
const page = readFileSync(join(ROOT, "docs/evidence/reliability.md"), "utf8")
const [, findings = ""] = page.split("## Defects that a review found")

/** The cells of each row of the tables with a test column. */
const rows = findings
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split(/(?<!\\)\|/u).map((cell) => cell.trim()))
  .filter((cells) => cells.length === 5)
  .map(([, defect = "", test = "", seen = ""]) => ({ defect, test, seen }))
  .filter(({ defect }) => defect !== "defect" && !/^-+$/u.test(defect))

/** A file of tests, and the names that follow it; the … of a name stands for anything. */
const named = (cell: string) => {
  const found: Array<{ readonly path: string; readonly names: Array<string> }> = []
  for (const [, path, name] of cell.matchAll(/(test\/[\w./-]+\.ts)|"([^"]+)"/gu))
    if (path !== undefined) found.push({ path, names: [] })
    else if (name !== undefined) found.at(-1)?.names.push(name)
  return found
}

/** The texts of a file, each whole; what a template fills in is a … */
const textsOf = (path: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  walk(parsed(path, readFileSync(join(ROOT, path), "utf8")).tree, (node) => {
    if (node.type === "Literal" && typeof node["value"] === "string") found.push(node["value"])
    if (node.type === "TemplateLiteral") found.push(templateText(node))
  })
  return found
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/gu, String.raw`\$&`)

const templateText = (node: SyntaxNode): string =>
  (node["quasis"] as ReadonlyArray<{ readonly value: { readonly cooked: string } }>)
    .map(({ value }) => value.cooked)
    .join("…")

it("docs/evidence/security.md has each file of the attacks that tests run, and each that it has is there", () => {
  const [, attacks = ""] = readFileSync(join(ROOT, "docs/evidence/security.md"), "utf8").split(
    "## Attacks that tests run"
  )
  const [table = ""] = attacks.split("\n## ")
  const told = [...table.matchAll(/^\| `([\w.]+\.test\.ts)`/gmu)].map(([, name = ""]) => name)
  const files = readdirSync(join(ROOT, "test/adversary")).filter((name) => name.endsWith(".test.ts"))
  assert.deepStrictEqual([...new Set(told)].toSorted(), files.toSorted())
})

describe("a row of the defects that a review found", () => {
  it("says whether its test fails without the fix", () => {
    assert.isAbove(rows.length, 90)
    for (const { defect, seen } of rows) assert.include(["yes", "not tried", "true before", "-"], seen, defect)
  })

  it("names tests that are there", () => {
    for (const { defect, test } of rows)
      for (const { names, path } of named(test)) {
        assert.isTrue(existsSync(join(ROOT, path)), `${defect}: ${path}`)
        const texts = textsOf(path)
        for (const name of names) {
          const whole = new RegExp(`^${name.split("…").map(escaped).join("[^]*")}$`, "u")
          assert.isTrue(
            texts.some((text) => whole.test(text)),
            `${defect}: ${path}: ${name}`
          )
        }
      }
  })
})
