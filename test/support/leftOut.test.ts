/** The tests of this repository that some machine leaves out: each says so, and fails instead with `CI=true` (docs/testing.md). */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const ROOT = join(import.meta.dirname, "../..")

interface File {
  readonly path: string
  readonly text: string
}

const files: ReadonlyArray<File> = globSync("test/**/*.ts", { cwd: ROOT })
  .filter((path) => path !== "test/support/leftOut.test.ts")
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }))

interface Declaration {
  readonly isExported: boolean
  readonly names: ReadonlyArray<string>
  /** The words of its text. */
  readonly words: ReadonlySet<string>
}

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.match(/\w+/gu))

const DECLARES = /^(?<indent> *)(?<exported>export )?const (?:\{(?<parts>[^}]*)\}|(?<name>\w+))/u

/** Each constant with its text, which ends where the next line begins that is indented no deeper. */
const declarationsOf = ({ text }: File): ReadonlyArray<Declaration> => {
  const lines = text.split("\n")
  return lines.flatMap((line, at) => {
    const { exported, indent = "", name, parts = "" } = DECLARES.exec(line)?.groups ?? {}
    const names = name === undefined ? (parts.match(/\w+/gu) ?? []) : [name]
    if (names.length === 0) return []
    const next = lines.findIndex(
      (each, index) => index > at && /^ *\w/u.test(each) && each.search(/\S/u) <= indent.length
    )
    const body = lines.slice(at, next < 0 ? undefined : next).join("\n")
    return [{ isExported: exported !== undefined, names, words: wordsOf(body) }]
  })
}

const mentions = (words: ReadonlySet<string>, names: Iterable<string>): boolean =>
  [...names].some((name) => words.has(name))

/** All names that are made with leaveOut, in the same file or by way of an export. */
const madeWithLeaveOut = (among: ReadonlyArray<File>) => {
  const exported = new Set(["leaveOut"])
  const own = new Map(among.map(({ path }) => [path, new Set<string>()]))
  const declared = among.map((file) => ({ path: file.path, declarations: declarationsOf(file) }))
  for (let before = -1, size = 0; before !== size;) {
    before = size
    for (const { declarations, path } of declared)
      for (const { isExported, names, words } of declarations) {
        if (!mentions(words, exported) && !mentions(words, own.get(path) ?? [])) continue
        for (const name of names) (isExported ? exported : own.get(path))?.add(name)
      }
    size = exported.size + [...own.values()].reduce((sum, { size: count }) => sum + count, 0)
  }
  return (path: string) => [...exported, ...(own.get(path) ?? [])]
}

/** What a machine is or has, which no test may go by silently. */
const MACHINE = ["getuid", "platform"]
/** The names of a file that say it. */
const aboutMachine = (file: File): ReadonlyArray<string> => [
  ...MACHINE,
  ...declarationsOf(file).flatMap(({ names, words }) => (mentions(words, MACHINE) ? names : []))
]

/** Conditions on which a test is not run, or ends before its end, with their lines. */
const CONDITIONS = [
  /\.(?:skipIf|runIf)\((?<condition>.*?)\)\(/gu,
  /(?<condition>.*)\b(?:describe|it(?:\.\w+)?)\.(?:skip|todo)\b/gu
]
const ENDS = [
  /\bif \((?<condition>.*)\)(?:\s*\{)?\s+return\b(?<rest>.*)/gu,
  /\bif \((?<condition>.*)\)\s+(?:it|describe)\b(?<rest>.*)/gu
]

const found = ({ path, text }: File, patterns: ReadonlyArray<RegExp>) =>
  patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map(({ 0: whole, groups = {}, index }) => ({
      place: `${path}:${text.slice(0, index).split("\n").length}: ${whole.trim().replaceAll(/\s+/gu, " ")}`,
      condition: groups["condition"] ?? "",
      rest: groups["rest"] ?? ""
    }))
  )

/** What is left out without a word, as `file:line: text`. */
const silent = (among: ReadonlyArray<File>): ReadonlyArray<string> => {
  const told = madeWithLeaveOut(among)
  return among
    .filter(({ path }) => path.endsWith(".test.ts"))
    .flatMap((file) => {
      const names = told(file.path)
      const machine = aboutMachine(file)
      const skips = found(file, CONDITIONS).filter(({ condition }) => !mentions(wordsOf(condition), names))
      const ends = found(file, ENDS).filter(
        ({ condition, rest }) =>
          mentions(wordsOf(condition), machine) && !mentions(wordsOf(`${condition} ${rest}`), names)
      )
      return [...skips, ...ends].map(({ place }) => place)
    })
}

describe("a test that some machine leaves out", () => {
  it("prints why by leaveOut, which fails with CI=true", () => {
    assert.isAbove(files.filter(({ text }) => text.includes(".skipIf(")).length, 30)
    assert.deepStrictEqual(silent(files), [])
  })
})

describe("the search for what is left out", () => {
  const problems = (text: string) => silent([{ path: "a.test.ts", text }])

  it.each([
    "it.skipIf(process.getuid?.() !== 0)('a', () => {})",
    "const isRoot = process.getuid?.() === 0\n\ndescribe.skipIf(!isRoot)('a', () => {})",
    "describe.skip('a', () => {})",
    "it.live.skip('a', () => {})",
    "it.todo('a')",
    "const works = probe()\nit.runIf(works)('a', () => {})",
    "const isRoot = process.getuid?.() === 0\n\nit('a', () => {\n  if (!isRoot) return\n})",
    "if (process.getuid?.() === 0)\n  it('a', () => {})"
  ])("finds %j", (text) => {
    assert.lengthOf(problems(text), 1)
  })

  it.each([
    "const reason = leaveOut('a', 'it is so')\ndescribe.skipIf(reason !== undefined)('a', () => {})",
    "const why = () => {\n  return leaveOut('a', 'it is so')\n}\n\nit.skipIf(why() !== undefined)('a', () => {})",
    "const suite = reason === undefined ? describe : describe.skip\nconst reason = leaveOut('a', 'b')",
    "it('a', () => {\n  if (process.getuid?.() !== 0) return void leaveOut('a', 'this is not root')\n})",
    "it('a', () => {\n  if (row === undefined) return\n})"
  ])("leaves %j alone", (text) => {
    assert.deepStrictEqual(problems(text), [])
  })
})
