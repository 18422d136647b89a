import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect } from "effect"
import { FOUND_LINE_BYTES_MAX, SEARCH_LINE_CHARS_MAX } from "#src/agent/tools/foundLines.ts"
import { fsSearch, SEARCH_BYTES_MAX, SEARCH_MATCHES_MAX } from "#src/agent/tools/fsSearch.ts"
import { laneThatSaw, OUTSIDE_TEXT, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const searcher = Effect.gen(function* () {
  const { root, outside } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(fsSearch(rgPath), yield* toolServices(root))
  const search = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  const put = (name: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  return { root, outside, tool, search, put }
})

const match = (path: string, line: number, text: string) => ({ path, line, text })

describe("choir.fs.search", () => {
  it.live("finds lines in the whole workspace, a folder or a file, sorted by path", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      put("b/one", "no\nneedle 1\n")
      put("b/two", "needle 2\n")
      put("a", "needle 3")
      const [first, second, third] = [
        match("a", 1, "needle 3"),
        match("b/one", 2, "needle 1"),
        match("b/two", 1, "needle 2")
      ]
      const expected: ReadonlyArray<readonly [string | undefined, ReadonlyArray<object>]> = [
        [undefined, [first, second, third]],
        [".", [first, second, third]],
        ["/workspace/b", [second, third]],
        ["./b/two", [third]]
      ]
      for (const [path, matches] of expected) {
        const { status, output } = yield* search(
          path === undefined ? { pattern: "n..dle" } : { pattern: "n..dle", path }
        )
        assert.deepStrictEqual([status, output], ["success", { matches, truncated: false }])
      }
      assert.deepInclude((yield* search({ pattern: "needle", glob: "**/two" })).output, { matches: [third] })
      assert.deepInclude((yield* search({ pattern: "needle", glob: "!b" })).output, { matches: [first] })
      assert.deepInclude((yield* search({ pattern: "nothing" })).output, { matches: [] })
    })
  )

  it.live("R39 follows no link out of the workspace or within it", () =>
    Effect.gen(function* () {
      const { root, outside, search, put } = yield* searcher
      put("inside", OUTSIDE_TEXT)
      symlinkSync(outside, join(root, "folder"))
      symlinkSync(join(outside, "file"), join(root, "file"))
      assert.deepInclude((yield* search({ pattern: OUTSIDE_TEXT })).output, {
        matches: [match("inside", 1, OUTSIDE_TEXT)]
      })
      for (const path of ["folder", "file", "folder/file"]) {
        const { status, summary } = yield* search({ pattern: OUTSIDE_TEXT, path })
        assert.strictEqual(status, "error")
        assert.match(summary, /symbolic link/u)
      }
    })
  )

  it.live("takes a pattern or a glob for nothing else", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      put("file", "--files\n--pre=evil\n")
      assert.deepInclude((yield* search({ pattern: "--files" })).output, { matches: [match("file", 1, "--files")] })
      assert.deepInclude((yield* search({ pattern: "--pre=evil" })).output, {
        matches: [match("file", 2, "--pre=evil")]
      })
      assert.deepInclude((yield* search({ pattern: "files", glob: "--pre=evil" })).output, { matches: [] })
    })
  )

  it.live("leaves out what is ignored, binary, of git or of the staging area", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      for (const name of [".git/config", ".choirtmp/recv/x", "ignored", ".hidden"]) put(name, "needle\n")
      put(".gitignore", "ignored\n")
      put("binary", "needle\0\n")
      put("latin", Buffer.from([0xe9, ...Buffer.from(" needle\n")]))
      const { output } = yield* search({ pattern: "needle" })
      assert.deepStrictEqual(output, {
        matches: [match(".hidden", 1, "needle"), match("latin", 1, "\ufffd needle")],
        truncated: false
      })
      assert.deepInclude((yield* search({ pattern: "needle", path: ".choirtmp/recv" })).output, {
        matches: [match(".choirtmp/recv/x", 1, "needle")]
      })
    })
  )

  it.live("shows of a long line the part around its match, and marks what is cut of it", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      const texts = Effect.fnUntraced(function* (pattern: string) {
        const { output } = yield* search({ pattern })
        return (output as { matches: ReadonlyArray<{ text: string }> }).matches.map(({ text }) => text)
      })
      put(
        "long",
        `${"\u00e9".repeat(5000)}needle${"y".repeat(4000)}\nfirst ${"z".repeat(1000)}\n${"w".repeat(600)}last\n`
      )
      const around = `${"\u00e9".repeat(100)}needle${"y".repeat(294)}`
      assert.deepStrictEqual(yield* texts("needle"), [`[4900 cut] ${around} [3706 cut]`])
      assert.deepStrictEqual(yield* texts("first"), [`first ${"z".repeat(394)} [606 cut]`])
      assert.deepStrictEqual(yield* texts("last$"), [`[204 cut] ${"w".repeat(396)}last`])
    })
  )

  it.live("cuts a line of any length, and still finds what other files hold", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      const lengths = [200_000, 1_600_000, 3_000_000, FOUND_LINE_BYTES_MAX + 1]
      lengths.forEach((length, at) => put(`long/${at}`, `first\n${"x".repeat(length)}needle${"y".repeat(1000)}\n`))
      // Each of its bytes is six in ripgrep's output.
      put("long/odd", `\u0001${"\u0001".repeat(2_000_000)}needle\n`)
      put("long/{z}", "needle".repeat(200_000))
      put("z", "a needle\n")
      const { output, summary } = yield* search({ pattern: "needle" })
      assert.strictEqual(summary, "7 matching lines")
      const { matches } = output as { matches: ReadonlyArray<{ path: string; line: number; text: string }> }
      const around = `${"x".repeat(100)}needle${"y".repeat(294)} [706 cut]`
      assert.deepStrictEqual(
        matches.map(({ path, line }) => `${path}:${line}`),
        ["long/0:2", "long/1:2", "long/2:2", "long/3:2", "long/odd:1", "long/{z}:undefined", "z:1"]
      )
      for (const { text } of matches.slice(0, 3)) assert.strictEqual(text.replace(/^\[\d+ cut\] /u, ""), around)
      const TOO_LONG = " [the line is too long to show where it matches]"
      assert.strictEqual(matches[3]?.text, "x".repeat(SEARCH_LINE_CHARS_MAX) + TOO_LONG)
      assert.strictEqual(matches[4]?.text, "\u0001".repeat(SEARCH_LINE_CHARS_MAX) + TOO_LONG)
      assert.deepStrictEqual((yield* search({ pattern: "needle", files_only: true })).output, {
        paths: ["long/0", "long/1", "long/2", "long/3", "long/odd", "long/{z}", "z"],
        truncated: false
      })
      assert.deepInclude((yield* search({ pattern: "needle", path: "long/1", files_only: true })).output, {
        paths: ["long/1"]
      })
    })
  )

  it.live("R48 bounds matches and lines, and says so", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      put("many", `needle ${"x".repeat(60)}\n`.repeat(1000))
      const { output, summary } = yield* search({ pattern: "needle" })
      const { matches, truncated } = output as { matches: ReadonlyArray<{ text: string }>; truncated: boolean }
      assert.deepStrictEqual([matches.length, truncated], [SEARCH_MATCHES_MAX, true])
      assert.strictEqual(summary, "100 or more matching lines")
      put("many", `needle ${"x".repeat(5000)}\n`.repeat(1000))
      const long = (yield* search({ pattern: "needle" })).output as typeof output & { matches: typeof matches }
      assert.strictEqual(long.matches[0]?.text.replace(/ \[\d+ cut\]$/u, "").length, SEARCH_LINE_CHARS_MAX)
      assert.isBelow(long.matches.length * SEARCH_LINE_CHARS_MAX, SEARCH_BYTES_MAX)
    })
  )

  it.live("shows the lines around a match, ignores case and names files alone where it is asked to", () =>
    Effect.gen(function* () {
      const { search, put } = yield* searcher
      put("a", "one\nNeedle\nthree\nfour\n")
      put("b", "needle\nneedle\n")
      const around = yield* search({ pattern: "Needle", context: 1 })
      assert.deepStrictEqual(around.output, {
        matches: [
          { ...match("a", 1, "one"), context: true },
          match("a", 2, "Needle"),
          { ...match("a", 3, "three"), context: true }
        ],
        truncated: false
      })
      assert.strictEqual(around.summary, "1 matching line")
      assert.strictEqual((yield* search({ pattern: "NEEDLE", ignore_case: true })).summary, "3 matching lines")
      const names = yield* search({ pattern: "needle", ignore_case: true, files_only: true, context: 1 })
      assert.deepStrictEqual([names.summary, names.output], ["2 files", { paths: ["a", "b"], truncated: false }])
      assert.deepInclude((yield* search({ pattern: "needle", path: "b", files_only: true })).output, { paths: ["b"] })
    })
  )

  it.live("tells the model what is wrong with a pattern, a glob or a path", () =>
    Effect.gen(function* () {
      const { search, put, tool } = yield* searcher
      put("file", "x")
      const expected: ReadonlyArray<readonly [object, RegExp]> = [
        [{ pattern: "(" }, /unclosed group/u],
        [{ pattern: "(", path: "file" }, /unclosed group/u],
        [{ pattern: "x", glob: "[" }, /glob/u],
        [{ pattern: "x", path: "nothing" }, /does not exist/u]
      ]
      for (const [input, problem] of expected) {
        const { status, summary } = yield* search(input)
        assert.strictEqual(status, "error")
        assert.match(summary, problem)
      }
      for (const input of [
        {},
        { pattern: "" },
        { pattern: "a\0" },
        { pattern: "x", path: ".." },
        { pattern: "x", glob: "" }
      ]) {
        assert.strictEqual((yield* Effect.flip(tool.prepare(input)))._tag, "InvalidInput")
      }
    })
  )

  it.live("D27 locks the workspace for a search of everything, else the file or folder", () =>
    Effect.gen(function* () {
      const { tool } = yield* searcher
      const locks = Effect.fnUntraced(function* (input: object) {
        return (yield* tool.prepare({ pattern: "x", ...input })).locks.map(
          ({ resource, mode }) => `${resource} ${mode}`
        )
      })
      assert.deepStrictEqual(yield* locks({}), ["workspace S"])
      assert.deepStrictEqual(yield* locks({ path: "." }), ["workspace S"])
      assert.deepStrictEqual(yield* locks({ path: "a/" }), ["file:a S"])
    })
  )
})
