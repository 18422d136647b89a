/** Searches as public reports on other agents describe them; docs/evidence/counterparts-search-and-tools.md names the reports. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect } from "effect"
import { fsFind } from "#src/agent/tools/fsFind.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

interface Output {
  readonly matches?: ReadonlyArray<{ readonly path: string; readonly line: number; readonly text: string }>
  readonly paths?: ReadonlyArray<string>
  readonly note?: string
}

const searcher = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const services = yield* toolServices(root)
  const search = yield* Effect.provideContext(fsSearch(rgPath), services)
  const find = yield* Effect.provideContext(fsFind(rgPath), services)
  const run = (tool: typeof search) =>
    Effect.fnUntraced(function* (input: unknown) {
      const { output, status, summary } = yield* (yield* tool.prepare(input)).run(laneThatSaw())
      const { matches = [], note, paths = [] } = (output ?? {}) as Output
      const lines = matches.map(({ line, path, text }) => `${path}:${line}:${text}`)
      return { status, summary, note, found: [...lines, ...paths].sort() }
    })
  const put = (name: string, content: string) => {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  return { search: run(search), find: run(find), put }
})

describe("a pattern", () => {
  it.live("may reach over lines, whatever ends them", () =>
    Effect.gen(function* () {
      const { put, search } = yield* searcher
      put("unix.js", "function x() {\n  break;\n}\n")
      put("windows.js", "function x() {\r\n  break;\r\n}\r\n")
      const { found } = yield* search({ pattern: String.raw`x\(\) \{\n *break;$` })
      assert.deepStrictEqual(found, [
        "unix.js:1:function x() {",
        "unix.js:2:  break;",
        "windows.js:1:function x() {",
        "windows.js:2:  break;"
      ])
    })
  )

  it.live("may look ahead and behind", () =>
    Effect.gen(function* () {
      const { put, search } = yield* searcher
      put("a", "price: 12 EUR\nprice: 12 USD\n")
      assert.deepStrictEqual((yield* search({ pattern: "(?<=price: )12(?= EUR)" })).found, ["a:1:price: 12 EUR"])
    })
  )

  it.live("that matches nothing as an expression, or is none, is looked for as plain text", () =>
    Effect.gen(function* () {
      const { put, search } = yield* searcher
      put("a.sql", "row_to_json(t)\nfoo(\n")
      const unmatched = yield* search({ pattern: "row_to_json(t)" })
      assert.deepStrictEqual(unmatched.found, ["a.sql:1:row_to_json(t)"])
      assert.match(unmatched.note ?? "", /plain text: nothing matches/u)
      const invalid = yield* search({ pattern: "foo(" })
      assert.deepStrictEqual(invalid.found, ["a.sql:2:foo("])
      assert.match(invalid.note ?? "", /plain text: it is not a valid/u)
      const neither = yield* search({ pattern: "bar(" })
      assert.strictEqual(neither.status, "error")
      assert.match(neither.summary, /unclosed group/u)
    })
  )

  it.live("that only ignored files match says which they are", () =>
    Effect.gen(function* () {
      const { put, search } = yield* searcher
      put(".gitignore", "scripts/*\n")
      put("scripts/writer.py", "example_writer\n")
      put("seen", "x\n")
      const { found, summary } = yield* search({ pattern: "example_writer" })
      assert.deepStrictEqual(found, [])
      assert.match(summary, /^0 matching lines; git ignores files that match: scripts\/writer\.py/u)
      assert.strictEqual((yield* search({ pattern: "nowhere" })).summary, "0 matching lines")
    })
  )

  it.live("finds letters with marks in either spelling", () =>
    Effect.gen(function* () {
      const { put, search } = yield* searcher
      const word = "Tiếng Việt"
      put("composed", `${word.normalize("NFC")}\n`)
      put("decomposed", `${word.normalize("NFD")}\n`)
      for (const form of ["NFC", "NFD"]) {
        const { found } = yield* search({ pattern: word.normalize(form), files_only: true })
        assert.deepStrictEqual(found, ["composed", "decomposed"], form)
      }
      assert.deepStrictEqual((yield* search({ pattern: "[ế]" })).found, [`composed:1:${word.normalize("NFC")}`])
    })
  )
})

describe("a glob", () => {
  it.live("takes brackets for letters of a name as well, and classes as ever", () =>
    Effect.gen(function* () {
      const { find, put, search } = yield* searcher
      put("app/[id]/page.tsx", "page\n")
      put("app/[[...sign-in]]/page.tsx", "page\n")
      put("b.ts", "page\n")
      assert.deepStrictEqual((yield* find({ glob: "app/[id]/*" })).found, ["app/[id]/page.tsx"])
      assert.deepStrictEqual((yield* find({ glob: "app/[[...sign-in]]/*" })).found, ["app/[[...sign-in]]/page.tsx"])
      assert.deepStrictEqual((yield* search({ pattern: "page", glob: "app/[id]/*.tsx" })).found, [
        "app/[id]/page.tsx:1:page"
      ])
      assert.deepStrictEqual((yield* find({ glob: "[abc].ts" })).found, ["b.ts"])
    })
  )

  it.live("of a folder's name is for everything in it", () =>
    Effect.gen(function* () {
      const { find, put } = yield* searcher
      put("src/deep/a/b.txt", "x")
      put("c.txt", "x")
      for (const glob of ["deep", "deep/", "src/deep", "/src"])
        assert.deepStrictEqual((yield* find({ glob })).found, ["src/deep/a/b.txt"], glob)
      assert.deepStrictEqual((yield* find({ glob: "!deep" })).found, ["c.txt"])
    })
  )

  it.live("may begin as paths do, and repeat the folder that is searched", () =>
    Effect.gen(function* () {
      const { find, put } = yield* searcher
      put("src/a.css", "x")
      put("b.css", "x")
      assert.deepStrictEqual((yield* find({ glob: "/workspace/*.css" })).found, ["b.css"])
      assert.deepStrictEqual((yield* find({ glob: "./src/*.css" })).found, ["src/a.css"])
      for (const glob of ["src/*.css", "/workspace/src/**"])
        assert.deepStrictEqual((yield* find({ glob, path: "src" })).found, ["src/a.css"], glob)
    })
  )

  it.live("finds names in either spelling of letters with marks", () =>
    Effect.gen(function* () {
      const { find, put } = yield* searcher
      const [composed, decomposed] = ["학점인정.md", "학점인정_2.md".normalize("NFD")]
      for (const name of [composed, decomposed]) put(name, "x")
      for (const form of ["NFC", "NFD"])
        assert.lengthOf((yield* find({ glob: "*학점*".normalize(form) })).found, 2, form)
    })
  )
})
