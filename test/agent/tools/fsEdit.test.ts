import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

/** A lane that remembers what it saw, as the arbiter does from events. */
const editor = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const tools = Effect.all({ reader: fsRead, tool: fsEdit })
  const { reader, tool } = yield* Effect.provideContext(tools, yield* toolServices(root))
  const seen: Record<string, string> = {}
  const edit = Effect.fnUntraced(function* (old_text: string, new_text: string, more: object = {}) {
    const outcome = yield* (yield* tool.prepare({ path: "file", old_text, new_text, ...more })).run(laneThatSaw(seen))
    for (const { path, after } of outcome.writes ?? []) seen[path] = after
    return outcome
  })
  const read = Effect.gen(function* () {
    const outcome = yield* (yield* reader.prepare({ path: "file" })).run(laneThatSaw(seen))
    for (const { path, sha256 } of outcome.reads ?? []) seen[path] = sha256
  })
  const put = (content: string | Uint8Array) => writeFileSync(join(root, "file"), content)
  const has = (content: string | Uint8Array) =>
    Effect.andThen(
      Effect.sync(() => put(content)),
      read
    )
  return { tool, edit, read, put, has, text: () => readFileSync(join(root, "file"), "utf8") }
})

const nearestOf = ({ output }: { readonly output?: unknown }) =>
  (
    (output as { readonly nearest?: ReadonlyArray<{ readonly line: number; readonly text: string }> }).nearest ?? []
  ).map(({ line, text }) => `${line} ${text}`)

describe("choir.fs.edit", () => {
  it.effect("replaces a text that occurs once, and shows the new lines", () =>
    Effect.gen(function* () {
      const { edit, has, text } = yield* editor
      yield* has("a\nb\nc\nd\n")
      const { output, status, summary } = yield* edit("b\nc", "B\nand\nC")
      assert.deepStrictEqual([status, summary], ["success", "changed file: lines 2-3 -> 2-4"])
      assert.deepInclude(output, {
        excerpt: ["a", "B", "and", "C", "d"].map((line, at) => ({ line: 1 + at, text: line }))
      })
      assert.strictEqual(text(), "a\nB\nand\nC\nd\n")
      assert.strictEqual((yield* edit("and\n", "")).summary, "changed file: deleted line 3")
      assert.strictEqual(text(), "a\nB\nC\nd\n")
    })
  )

  it.effect("takes texts literally, in files with other line ends too", () =>
    Effect.gen(function* () {
      const { edit, has, text } = yield* editor
      yield* has("a.c $1\r\nabc\r\n")
      yield* edit("a.c $1\nabc", "$& $1\n\\1")
      assert.strictEqual(text(), "$& $1\r\n\\1\r\n")
    })
  )

  it.effect("refuses a text that occurs more than once, says where, and replaces all of them on request", () =>
    Effect.gen(function* () {
      const { edit, has, text } = yield* editor
      yield* has("x\ny\nx\naa aaa\n")
      const twice = yield* edit("x", "z")
      assert.strictEqual(
        twice.summary,
        "file holds old_text more than once. Add lines around it until it is unique, or set replace_all. It occurs 2 times. The first are on lines 1, 3."
      )
      assert.match((yield* edit("aa", "b")).summary, /It occurs 3 times/u)
      assert.strictEqual((yield* edit("x", "z", { replace_all: true })).summary, "changed file: lines 1-3")
      yield* edit("aa", "b", { replace_all: true })
      assert.strictEqual(text(), "z\ny\nz\nb ba\n")
    })
  )

  it.effect("shows the nearest lines where a text does not occur", () =>
    Effect.gen(function* () {
      const { edit, has, text } = yield* editor
      const file = "import x\n\nexport const one = () => {\n  return load(1)\n}\n"
      yield* has(file)
      const indented = yield* edit("\n  export const one = () => {\n", "")
      assert.match(indented.summary, /does not hold old_text\. Copy the text exactly as a read shows it/u)
      assert.include(nearestOf(indented), "3 export const one = () => {")
      assert.include(nearestOf(yield* edit("return load(2)", "")), "4   return load(1)")
      assert.deepStrictEqual(nearestOf(yield* edit("quite different words", "")), [])
      assert.strictEqual(text(), file)
    })
  )

  it.effect("E10 refuses a version that the lane has not seen, and tells nothing of it", () =>
    Effect.gen(function* () {
      const { edit, put, read, text } = yield* editor
      put("theirs\n")
      const unseen = yield* edit("nothing", "x")
      assert.match(unseen.summary, /was not read by you yet/u)
      assert.notInclude(JSON.stringify(unseen), "theirs")
      yield* read
      put("theirs\nnewer\n")
      const stale = yield* edit("theirs", "mine")
      assert.match(stale.summary, /has changed since you last read/u)
      assert.include((stale.output as { readonly diff: string }).diff, "-theirs\n+mine\n")
      assert.notInclude(JSON.stringify(yield* edit("nothing", "x")), "newer")
      assert.strictEqual(text(), "theirs\nnewer\n")
    })
  )

  it.effect("refuses what it cannot edit, with the way out", () =>
    Effect.gen(function* () {
      const { edit, has, tool } = yield* editor
      assert.match((yield* edit("a", "b")).summary, /does not exist\. Create it with a write/u)
      yield* has(Buffer.from("a\0b"))
      assert.match((yield* edit("a", "b")).summary, /binary/u)
      yield* has("a".repeat(1000))
      const huge = yield* edit("a", "b".repeat(20_000), { replace_all: true })
      assert.match(huge.summary, /would be larger than/u)
      const inputs: ReadonlyArray<readonly [object, RegExp]> = [
        [{ path: "a", old_text: "", new_text: "x" }, /^old_text must not be empty$/u],
        [{ path: "a", old_text: "x", new_text: "x" }, /^new_text is the same as old_text$/u],
        [{ path: "a", old_string: "x", new_text: "y" }, /^there is no old_string; the key is old_text$/u]
      ]
      for (const [input, problem] of inputs) assert.match((yield* Effect.flip(tool.prepare(input))).problem, problem)
    })
  )
})
