/** The tests of the invariants notice what breaks them, each by its own assertion, and docs/invariants.md says the same. */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { INVARIANTS, nameOf } from "./invariants.ts"
import { MUTATIONS } from "./mutations.ts"
import { ROOT } from "./source.ts"

/** The child tries every mutation, one after the other; it takes some 15 s on an idle machine. */
const CHILD_MS_MAX = 300_000

interface Assertion {
  readonly ancestorTitles: ReadonlyArray<string>
  readonly title: string
  readonly status: string
  readonly failureMessages: ReadonlyArray<string>
}

const folder = mkdtempSync(join(tmpdir(), "choir-mutations-"))
const report = join(folder, "report.json")
let assertions: ReadonlyArray<Assertion> = []

/** Runs mutants.ts in a process of its own, whose tests are meant to fail. */
const runMutants = () =>
  new Promise<string>((resolve) => {
    const config = join(import.meta.dirname, "mutants.config.ts")
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs")
    const args = [vitest, "run", "--config", config, "--reporter=json", `--outputFile=${report}`]
    execFile(process.execPath, args, { cwd: ROOT, timeout: CHILD_MS_MAX }, (_, stdout, stderr) =>
      resolve(stdout + stderr)
    )
  })

const outcome = (invariant: string, title: string): Assertion => {
  const found = assertions.find(
    ({ ancestorTitles, ...test }) => ancestorTitles[0] === invariant && test.title === title
  )
  return found ?? assert.fail(`the test "${title}" of "${invariant}" did not run`)
}

describe("the tests of the invariants", () => {
  beforeAll(async () => {
    const printed = await runMutants()
    assert.isTrue(existsSync(report), printed)
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
      readonly testResults: ReadonlyArray<{ readonly assertionResults: ReadonlyArray<Assertion> }>
    }
    assertions = testResults.flatMap(({ assertionResults }) => assertionResults)
  }, CHILD_MS_MAX)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  for (const invariant of INVARIANTS) {
    const name = nameOf(invariant)
    const own = MUTATIONS.filter((mutation) => mutation.invariant === invariant.number)

    it(`pass over the sources as they are: ${name}`, () => {
      const { failureMessages, status } = outcome(name, "as it is")
      assert.strictEqual(status, "passed", failureMessages.join("\n"))
      assert.isAtLeast(own.length, 1)
    })

    for (const { id, red, why } of own)
      it(`notice mutation ${id}, ${why}: ${name}`, () => {
        const { failureMessages, status } = outcome(name, id)
        assert.strictEqual(status, "failed", "the test did not notice")
        const [message = ""] = failureMessages
        assert.match(message, /^AssertionError: /u)
        assert.include(message, red)
      })
  }
})

describe("a mutation", () => {
  for (const { file, find, id, replace } of MUTATIONS)
    it(`${id} changes a text that its source holds once`, () => {
      const parts = readFileSync(join(ROOT, file), "utf8").split(find)
      assert.strictEqual(parts.length - 1, 1, `${file}: ${find}`)
      assert.notStrictEqual(find, replace)
    })
})

describe("docs/invariants.md and its evidence", () => {
  const page = readFileSync(join(ROOT, "docs/invariants.md"), "utf8")
  const table = readFileSync(join(ROOT, "docs/evidence/invariants.md"), "utf8")
  const cells = (line: string) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim())

  it("has a section for each invariant", () => {
    const headings = page.split("\n").filter((line) => line.startsWith("## Invariant "))
    assert.deepStrictEqual(
      headings.map((line) => line.slice("## ".length)),
      INVARIANTS.map(nameOf)
    )
  })

  it("lists the mutations as they are", () => {
    const rows = table.split("\n").filter((line) => /^\| \d+[a-z] /u.test(line))
    assert.deepStrictEqual(
      rows.map(cells),
      MUTATIONS.map(({ file, id, red, why }) => [id, `\`${file}\``, why, red])
    )
  })

  it("names files that are there", () => {
    const paths = [...page.matchAll(/`((?:src|schema|test|docs)\/[^`\s]+)`/gu)].map(([, path = ""]) => path)
    assert.isAbove(paths.length, INVARIANTS.length)
    assert.deepStrictEqual(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      []
    )
  })
})
