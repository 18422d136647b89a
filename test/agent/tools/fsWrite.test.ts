import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

/** A lane that remembers what it saw, as the arbiter does from events. */
const writer = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const tools = Effect.all({ reader: fsRead, tool: fsWrite })
  const { reader, tool } = yield* Effect.provideContext(tools, yield* toolServices(root))
  const seen: Record<string, string> = {}
  const write = Effect.fnUntraced(function* (input: unknown) {
    const outcome = yield* (yield* tool.prepare(input)).run(laneThatSaw(seen))
    for (const { path, after } of outcome.writes ?? []) seen[path] = after
    return outcome
  })
  const read = Effect.fnUntraced(function* (path: string) {
    const outcome = yield* (yield* reader.prepare({ path })).run(laneThatSaw(seen))
    for (const { path, sha256 } of outcome.reads ?? []) seen[path] = sha256
  })
  return {
    tool,
    write,
    read,
    text: (name: string) => readFileSync(join(root, name), "utf8"),
    put: (name: string, content: string | Uint8Array) => writeFileSync(join(root, name), content)
  }
})

describe("choir.fs.write", () => {
  it.effect("creates a file that nobody read, and lets its writer go on", () =>
    Effect.gen(function* () {
      const { write, text } = yield* writer
      const first = yield* write({ path: "a/b", content: "1\n", mode: "overwrite" })
      assert.strictEqual(first.summary, "created a/b")
      assert.notProperty(first.writes?.[0], "before")
      const second = yield* write({ path: "./a/b", content: "2\n", mode: "append" })
      assert.deepStrictEqual(second.writes?.[0]?.before, first.writes?.[0]?.after)
      yield* write({ path: "/workspace/a/b", content: "0", mode: "insert", line: 1, expect: "1" })
      assert.strictEqual(text("a/b"), "0\n1\n2\n")
    })
  )

  const edits: ReadonlyArray<readonly [string, string, object, string]> = [
    ["appends as is", "a", { mode: "append", content: "b" }, "ab"],
    ["inserts before a line", "1\n2\n", { mode: "insert", line: 2, content: "x", expect: "2" }, "1\nx\n2\n"],
    ["replaces one line", "1\n2\n3\n", { mode: "replace", line: 2, content: "x", expect: "2" }, "1\nx\n3\n"],
    [
      "replaces lines, both ends included",
      "1\n2\n3\n",
      { mode: "replace", line: 1, end_line: 2, content: "x\n", expect: "1", expect_end: "2\n" },
      "x\n3\n"
    ],
    [
      "deletes lines",
      "1\n2\n3\n",
      { mode: "replace", line: 2, end_line: 3, content: "", expect: "2", expect_end: "3" },
      "1\n"
    ],
    ["keeps a last line without newline so", "1\n2", { mode: "replace", line: 2, content: "x", expect: "2" }, "1\nx"],
    [
      "keeps Windows line ends",
      "1\r\n2\r\n",
      { mode: "replace", line: 2, content: "x\ny", expect: "2" },
      "1\r\nx\r\ny\r\n"
    ],
    ["counts lines of multi-byte text", "é\n💥\n", { mode: "replace", line: 2, content: "ü", expect: "💥" }, "é\nü\n"],
    [
      "tells equal lines apart by those after them",
      "{\n}\n{\n}\nend",
      { mode: "replace", line: 4, content: "x", expect: "}\nend" },
      "{\n}\n{\nx\nend"
    ],
    [
      "tells the end of a range apart by the lines before it",
      "a\n}\nb\n}\n",
      { mode: "replace", line: 1, end_line: 4, content: "x", expect: "a", expect_end: "b\n}" },
      "x\n"
    ]
  ]
  for (const [name, before, edit, after] of edits) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const { write, read, put, text } = yield* writer
        put("file", before)
        yield* read("file")
        const { status, summary } = yield* write({ path: "file", ...edit })
        assert.strictEqual(status, "success")
        assert.match(summary, /^changed file: (?:added |deleted )?lines? \d/u)
        assert.strictEqual(text("file"), after)
      })
    )
  }

  it.effect("E10 refuses to touch a file that the lane never read", () =>
    Effect.gen(function* () {
      const { write, put, text } = yield* writer
      put("file", "theirs")
      for (const edit of [{ mode: "overwrite" }, { mode: "append" }, { mode: "insert", line: 1, expect: "theirs" }]) {
        const { status, summary, output, writes } = yield* write({ path: "file", content: "mine", ...edit })
        assert.strictEqual(status, "error")
        assert.match(summary, /Read it first/u)
        assert.match((output as Record<string, string>)["sha256"] ?? "", /^[0-9a-f]{64}$/u)
        assert.notProperty(output, "diff")
        assert.isUndefined(writes)
      }
      assert.strictEqual(text("file"), "theirs")
    })
  )

  it.effect("E10 refuses a write over a newer version, with its hash and a diff, until it was read again", () =>
    Effect.gen(function* () {
      const { write, read, put, text } = yield* writer
      put("file", "1\n2\n")
      yield* read("file")
      put("file", "1\n2\n3\n")
      const refused = yield* write({ path: "file", content: "1\nmine\n", mode: "overwrite" })
      assert.match(refused.summary, /has changed since you last read/u)
      assert.include((refused.output as Record<string, string>)["diff"], " 1\n-2\n-3\n+mine\n")
      assert.strictEqual(text("file"), "1\n2\n3\n")
      yield* read("file")
      assert.strictEqual((yield* write({ path: "file", content: "1\nmine\n", mode: "overwrite" })).status, "success")
    })
  )

  it.effect("bounds the diff of two large files", () =>
    Effect.gen(function* () {
      const { write, read, put } = yield* writer
      put("file", "x")
      yield* read("file")
      put("file", Array.from({ length: 50_000 }, (_, line) => `a${line}\n`).join(""))
      const content = Array.from({ length: 50_000 }, (_, line) => `b${line}\n`).join("")
      const { output } = yield* write({ path: "file", content, mode: "overwrite" })
      assert.isBelow(JSON.stringify(output).length, 5000)
    })
  )

  it.effect("refuses lines that are not there", () =>
    Effect.gen(function* () {
      const { write, read, put, text } = yield* writer
      put("file", "1\n2\n")
      put("binary", "a\0b")
      yield* read("file")
      yield* read("binary")
      const refused: ReadonlyArray<readonly [object, RegExp]> = [
        [{ path: "file", mode: "insert", line: 3, expect: "" }, /fewer lines.*It has 2 lines/u],
        [{ path: "file", mode: "replace", line: 3, expect: "3" }, /fewer lines/u],
        [{ path: "file", mode: "replace", line: 1, end_line: 3, expect: "1", expect_end: "3" }, /fewer lines/u],
        [{ path: "binary", mode: "insert", line: 1, expect: "a" }, /binary/u],
        [{ path: "new", mode: "insert", line: 1, expect: "a" }, /does not exist/u]
      ]
      for (const [input, problem] of refused) {
        const { status, summary } = yield* write({ content: "x", ...input })
        assert.strictEqual(status, "error")
        assert.match(summary, problem)
      }
      assert.strictEqual(text("file"), "1\n2\n")
    })
  )

  it.effect("shows what it changed, with the new numbers", () =>
    Effect.gen(function* () {
      const { write, read, put } = yield* writer
      put("file", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
      yield* read("file")
      const changed = yield* write({ path: "file", mode: "replace", line: 4, content: "x\ny", expect: "4" })
      assert.strictEqual(changed.summary, "changed file: lines 4 -> 4-5")
      assert.deepInclude(changed.output, {
        from: { first: 4, last: 4 },
        to: { first: 4, last: 5 },
        excerpt: ["3", "x", "y", "5", "6", "7"].map((text, at) => ({ line: 3 + at, text }))
      })
      const long = yield* write({ path: "file", mode: "insert", line: 1, content: "a\n".repeat(40), expect: "1" })
      assert.strictEqual(long.summary, "changed file: added lines 1-40")
      const { excerpt } = long.output as { readonly excerpt: ReadonlyArray<{ readonly line: number }> }
      assert.deepStrictEqual(
        excerpt.map(({ line }) => line),
        [1, 2, 3, 39, 40, 41]
      )
      const gone = yield* write({ path: "file", mode: "overwrite", content: "1\n" })
      assert.strictEqual(gone.summary, "changed file: lines 1-50 -> 1")
      const same = yield* write({ path: "file", mode: "overwrite", content: "1\n" })
      assert.strictEqual(same.summary, "left unchanged file")
    })
  )

  it.effect("refuses lines whose text is not the expected one, and shows what is there", () =>
    Effect.gen(function* () {
      const { write, read, put, text } = yield* writer
      put("file", "a\nb\nc\n}\nd\n}\n")
      yield* read("file")
      const edit = { path: "file", mode: "replace", content: "x" }
      const moved = yield* write({ ...edit, line: 1, expect: "c" })
      assert.match(moved.summary, /does not have the text of expect on that line/u)
      assert.deepInclude(moved.output, {
        nearest: ["a", "b", "c", "}", "d", "}"].map((line, at) => ({ line: 1 + at, text: line }))
      })
      const twice = yield* write({ ...edit, line: 4, expect: "}" })
      assert.match(twice.summary, /in several places.*The first are on lines 4, 6\./u)
      const ends = yield* write({ ...edit, line: 1, end_line: 3, expect: "a", expect_end: "b" })
      assert.match(ends.summary, /does not have the text of expect_end on end_line/u)
      const blank = yield* write({ ...edit, line: 2, expect: "" })
      assert.match(blank.summary, /does not have the text/u)
      assert.strictEqual(text("file"), "a\nb\nc\n}\nd\n}\n")
    })
  )

  it.effect("refuses an input that does not fit before anything is locked", () =>
    Effect.gen(function* () {
      const { tool } = yield* writer
      const file = { path: "a", content: "" }
      const inputs: ReadonlyArray<readonly [object, RegExp]> = [
        [{ path: "a", mode: "overwrite" }, /^content is missing$/u],
        [file, /^mode is missing$/u],
        [{ ...file, mode: "prepend" }, /^mode must be one of "overwrite", "append", "insert", "replace"$/u],
        [{ ...file, mode: "insert" }, /needs a line/u],
        [{ ...file, mode: "insert", line: 3 }, /needs expect, the present text of line 3/u],
        [{ ...file, mode: "overwrite", line: 3 }, /takes no line/u],
        [{ ...file, mode: "append", expect: "x" }, /takes no expect/u],
        [{ ...file, mode: "insert", line: 3, end_line: 4, expect: "x" }, /takes no end_line/u],
        [{ ...file, mode: "replace", line: 3, end_line: 2, expect: "x" }, /before line/u],
        [
          { ...file, mode: "replace", line: 3, end_line: 4, expect: "x" },
          /expect_end is missing: give the present text/u
        ],
        [{ ...file, mode: "overwrite", path: "/etc/passwd" }, /outside|leaves/u]
      ]
      for (const [input, problem] of inputs) {
        assert.match((yield* Effect.flip(tool.prepare(input))).problem, problem)
      }
    })
  )

  it.effect("locks the file for writing", () =>
    Effect.gen(function* () {
      const { tool } = yield* writer
      const { locks } = yield* tool.prepare({ path: "a//b", content: "", mode: "append" })
      assert.deepStrictEqual(
        locks.map(({ resource, mode }) => [resource, mode]),
        [["file:a/b", "X"]]
      )
      for (const [path, beside] of [
        [".choirtmp/edge/a", true],
        ["/workspace/./.choirtmp/edge/b/c", true],
        [".choirtmp/edge", false],
        [".choirtmp/edge/../send/a", false],
        [".choirtmp/edges/a", false],
        ["a/b", false]
      ] as const)
        assert.strictEqual((yield* tool.prepare({ path, content: "", mode: "overwrite" })).besideJobs, beside, path)
      assert.deepStrictEqual([tool.llm.name, tool.effect], ["choir.fs.write", "workspace"])
    })
  )
})
