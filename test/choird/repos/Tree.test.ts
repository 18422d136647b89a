/** The work that the check of a repository's names costs, and which names it takes for the same. */
import { assert, describe, it, vi } from "@effect/vitest"
import { clashes } from "#src/choird/proposals/draftFiles.ts"
import { REPO_FOLDERS_MAX, treeProblems } from "#src/choird/repos/Tree.ts"
import { pinProblems, withPin } from "#src/choird/repos/skillPins.ts"
import { SkillName } from "#schema/Skill.ts"

const entry = (path: string) => ({ mode: "100644", id: "0".repeat(40), bytes: 1, path, utf8: true })
const problems = (paths: ReadonlyArray<string>) =>
  treeProblems("repo", paths.map(entry)).map(({ path, reason }) => `${path.slice(0, 20)}: ${reason}`)

/** The characters that a method of strings or lists is given, or makes, while something runs. */
const charsOf = <A>(spied: "join" | "normalize", run: () => A): readonly [A, number] => {
  const results: Array<string> = []
  const prototype = (spied === "join" ? Array.prototype : String.prototype) as unknown as Record<
    string,
    (...args: ReadonlyArray<unknown>) => string
  >
  const real = prototype[spied]!
  const spy = vi.spyOn(prototype, spied).mockImplementation(function (this: unknown, ...args) {
    const made = real.apply(this, args)
    results.push(made)
    return made
  })
  try {
    const value = run()
    return [value, results.reduce((sum, { length }) => sum + length, 0)]
  } finally {
    spy.mockRestore()
  }
}

const deep = (depth: number, file: string, name = "d") => [...Array<string>(depth).fill(name), file].join("/")
const lengthOf = (paths: ReadonlyArray<string>) => paths.reduce((sum, { length }) => sum + length, 0)

describe("the names of a repository", () => {
  it("are compared for no more than the bytes of their paths, when these are as deep and long as they may be", () => {
    const paths = Array.from({ length: 150 }, (_, at) => deep(32, `${at}`, `folder-of-${String(at).padStart(4, "0")}`))
    assert.isAbove(lengthOf(paths), 72_000)
    const [found, chars] = charsOf("normalize", () => problems(paths))
    assert.deepStrictEqual(found, [])
    assert.isAtMost(chars, lengthOf(paths))
  })

  it("are compared once for all files of a folder", () => {
    const [, chars] = charsOf("normalize", () => problems(Array.from({ length: 1000 }, (_, at) => deep(30, `${at}`))))
    assert.isAtMost(chars, 4000)
  })

  it.each([
    ["3,000 folders deep", 3000, "the path is longer than 512 bytes"],
    ["200 folders deep", 200, "the path is more than 32 folders deep"],
    ["33 folders deep", 33, "the path is more than 32 folders deep"]
  ])("are not compared at all when a path is %s", (_, depth, reason) => {
    const [found, chars] = charsOf("normalize", () =>
      problems(Array.from({ length: 500 }, (_, at) => deep(depth, `${at}`)))
    )
    assert.strictEqual(chars, 0)
    assert.lengthOf(found, 50)
    assert.match(found[0] ?? "", new RegExp(`: ${reason}$`, "u"))
  })

  it("are refused with too many folders, of which no more are kept", () => {
    const paths = Array.from({ length: 1000 }, (_, at) => deep(20, "x", `n${at}`))
    const [found, chars] = charsOf("normalize", () => problems(paths))
    assert.deepStrictEqual(found, [`(all files): more than ${REPO_FOLDERS_MAX} folders`])
    assert.isBelow(chars, 6 * REPO_FOLDERS_MAX)
  })

  it.each([
    ["a file in another case", ["a/x", "a/X"], ["a/X"]],
    ["a folder in another case, for each of its files", ["A/x", "a/y", "a/z"], ["a/y", "a/z"]],
    ["a folder far down", ["a/b/C/x", "a/b/c/x"], ["a/b/c/x"]],
    ["a file and a folder", ["a/B", "a/b/x"], ["a/b/x"]],
    ["other accents", ["\u00e9", "e\u0301"], ["e\u0301"]],
    ["the same name in two folders", ["a/X", "b/x", "x/a", "y/A"], []],
    ["a file beside longer names", ["ab", "a", "a.b", "a-B/x"], []]
  ])("are told apart, or not, with %s", (_, paths, refused) => {
    assert.deepStrictEqual(
      problems(paths),
      refused.map((path) => `${path}: the name differs from another only in case or accents`)
    )
  })
})

describe("files below a file", () => {
  it("are found in whatever order they come", () => {
    const paths = ["a/b/c", "a-b", "a", "a/b", "b/c", "c", "a b/x", "cc/d"]
    assert.deepStrictEqual([...clashes(paths)].sort(), ["a/b", "a/b/c"])
    assert.deepStrictEqual([...clashes(paths.toReversed())].sort(), ["a/b", "a/b/c"])
    assert.deepStrictEqual(clashes(["a/b", "a/b"]), [])
  })

  it("are searched without the prefixes of each path", () => {
    const paths = Array.from({ length: 100 }, (_, at) => deep(100, `${at}`))
    const [found, chars] = charsOf("join", () => clashes(paths))
    assert.deepStrictEqual(found, [])
    assert.strictEqual(chars, 0)
  })
})

describe("the pins of a repository's skills", () => {
  it("are checked with one look at each file, however many there are", () => {
    const pin = { from: "elsewhere", sha256: "0".repeat(64) }
    const names = Array.from({ length: 100 }, (_, at) => SkillName.make(`s${at}`))
    const lock = names.reduce((text, name) => withPin(JSON.parse(text).skills, name, pin), `{"skills":{}}`)
    let looks = 0
    const file = (path: string) => ({
      get path() {
        looks += 1
        return path
      },
      executable: false,
      bytes: Buffer.from("x")
    })
    const files = [
      ...Array.from({ length: 100 }, (_, at) => file(`skills/other-${at}/SKILL.md`)),
      { path: "skills.lock.json", executable: false, bytes: Buffer.from(lock) }
    ]
    assert.lengthOf(pinProblems(files), 100)
    assert.isAtMost(looks, 2 * files.length)
  })
})
