import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fsRead, READ_BYTES_MAX, READ_LINES_MAX } from "#src/agent/tools/fsRead.ts"
import { PICTURE_BYTES_MAX, PICTURE_SIDE_MAX } from "#src/agent/workspace/Pictures.ts"
import { pngOf } from "../../support/pictures.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const reader = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(fsRead, yield* toolServices(root))
  const read = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  return {
    root,
    tool,
    read,
    put: (name: string, content: string | Uint8Array) => writeFileSync(join(root, name), content)
  }
})

const HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

const PNG = pngOf(3, 2)

describe("choir.fs.read", () => {
  it.effect("shows a file with its lines and hash, and records the version that was read", () =>
    Effect.gen(function* () {
      const { put, read } = yield* reader
      put("file", "hello")
      assert.deepStrictEqual(yield* read({ path: "./file" }), {
        status: "success",
        summary: "lines 1-1 of 1 of file",
        output: {
          path: "file",
          content: "hello",
          first_line: 1,
          last_line: 1,
          lines_total: 1,
          sha256: HELLO_SHA256,
          truncated: false
        },
        reads: [{ path: "file", sha256: HELLO_SHA256 }],
        files: { shows: ["file"] }
      })
    })
  )

  it.effect("shows the asked lines and hashes the whole file", () =>
    Effect.gen(function* () {
      const { put, read } = yield* reader
      put("file", "1\n2\n3\n4\n5")
      const expected: ReadonlyArray<readonly [object, string, number, number]> = [
        [{ head: 2 }, "1\n2\n", 1, 2],
        [{ head: 9 }, "1\n2\n3\n4\n5", 1, 5],
        [{ tail: 2 }, "4\n5", 4, 5],
        [{ tail: 9 }, "1\n2\n3\n4\n5", 1, 5],
        [{ lines: "2-3" }, "2\n3\n", 2, 3],
        [{ lines: "5-100" }, "5", 5, 5],
        [{ offset: 4 }, "4\n5", 4, 5],
        [{ offset: 2, limit: 2 }, "2\n3\n", 2, 3],
        [{ limit: 1 }, "1\n", 1, 1],
        [{ offset: -2 }, "4\n5", 4, 5],
        [{ offset: -9, limit: 1 }, "1\n", 1, 1]
      ]
      const whole = yield* read({ path: "file" })
      for (const [part, content, first_line, last_line] of expected) {
        const { output, reads } = yield* read({ path: "file", ...part })
        assert.deepInclude(output, { content, first_line, last_line, lines_total: 5, truncated: false })
        assert.deepStrictEqual(reads, whole.reads)
      }
      const beyond = yield* read({ path: "file", lines: "6-7" })
      assert.deepStrictEqual([beyond.status, beyond.summary], ["error", "file has 5 lines; there is none at 6-7"])
    })
  )

  it.effect("shows an empty file", () =>
    Effect.gen(function* () {
      const { put, read } = yield* reader
      put("file", "")
      for (const part of [{}, { head: 1 }, { tail: 1 }]) {
        const { status, output } = yield* read({ path: "file", ...part })
        assert.strictEqual(status, "success")
        assert.deepInclude(output, { content: "", first_line: 1, last_line: 0, lines_total: 0 })
      }
    })
  )

  it.effect("cuts at a line what is more than one call may read, and says where", () =>
    Effect.gen(function* () {
      const { put, read } = yield* reader
      put("file", `${"é\u0001".repeat(30)}\n`.repeat(20_000))
      const { output } = yield* read({ path: "file", offset: 11 })
      const { content, last_line, truncated } = output as Record<string, unknown>
      assert.isAtMost(Buffer.byteLength(JSON.stringify(content)), READ_BYTES_MAX)
      assert.strictEqual(truncated, true)
      assert.strictEqual((content as string).split("\n").length - 1, (last_line as number) - 10)
      put("line", "💥".repeat(200_000))
      const single = (yield* read({ path: "line" })).output as Record<string, unknown>
      assert.isTrue((single["content"] as string).isWellFormed())
      assert.deepInclude(single, { truncated: true, last_line: 1, lines_total: 1 })
      put("short", "x\n".repeat(9000))
      for (const part of [{}, { limit: 9000 }, { lines: "1-9000" }, { head: 9000 }])
        assert.deepInclude((yield* read({ path: "short", ...part })).output, { last_line: READ_LINES_MAX })
    })
  )

  it.effect("says that a file is binary instead of dumping it, and counts it as seen", () =>
    Effect.gen(function* () {
      const { put, read } = yield* reader
      for (const bytes of [Buffer.from("a\0b"), Buffer.from([0x68, 0xe9])]) {
        put("file", bytes)
        const { status, output, reads } = yield* read({ path: "file" })
        assert.deepInclude(output, { binary: true, bytes: bytes.length })
        assert.notProperty(output, "content")
        assert.deepStrictEqual([status, reads?.length], ["success", 1])
      }
    })
  )

  it.effect("answers with a picture, and keeps a copy of it for prompts", () =>
    Effect.gen(function* () {
      const { put, read, root } = yield* reader
      put("a.png", PNG)
      const { pictures, summary } = yield* read({ path: "a.png" })
      assert.strictEqual(summary, `a.png is a PNG image of ${PNG.length} bytes, 3 × 2 pixels`)
      const sha256 = createHash("sha256").update(PNG).digest("hex")
      assert.deepStrictEqual(pictures, [{ type: "image/png", sha256, bytes: PNG.length, width: 3, height: 2 }])
      assert.deepStrictEqual(readFileSync(join(root, `.choirtmp/pictures/${sha256}.png`)), PNG)
    })
  )

  it.effect("says why a picture cannot be shown", () =>
    Effect.gen(function* () {
      const { put, read, root } = yield* reader
      put("large.png", Buffer.concat([PNG, Buffer.alloc(PICTURE_BYTES_MAX)]))
      put("wide.png", pngOf(PICTURE_SIDE_MAX + 1, 1))
      for (const [path, why] of [
        ["large.png", /is larger than the 3,750,000 bytes that can be shown: make it smaller/u],
        ["wide.png", /has a side of more than the 8,000 pixels that can be shown: make it smaller/u]
      ] as const) {
        const outcome = yield* read({ path })
        assert.match(outcome.summary, why)
        assert.notProperty(outcome, "pictures")
      }
      writeFileSync(join(root, ".choirtmp"), "a file where the copies would be")
      put("a.png", PNG)
      assert.match((yield* read({ path: "a.png" })).summary, /cannot be shown, because no copy of it can be kept/u)
    })
  )

  it.effect("lists a folder", () =>
    Effect.gen(function* () {
      const { root, put, read } = yield* reader
      mkdirSync(join(root, "folder"))
      put("folder/file", "")
      const { status, output } = yield* read({ path: "./folder/" })
      assert.strictEqual(status, "success")
      assert.deepStrictEqual(output, { path: "folder", entries: ["file"], truncated: false })
      assert.deepInclude((yield* read({ path: "." })).output, { path: "", entries: ["folder/"] })
    })
  )

  it.effect("tells the model what is wrong with a path", () =>
    Effect.gen(function* () {
      const { root, read } = yield* reader
      symlinkSync("/etc/passwd", join(root, "link"))
      assert.match((yield* read({ path: "link" })).summary, /symbolic link/u)
      assert.match((yield* read({ path: "nothing" })).summary, /"nothing" does not exist/u)
    })
  )

  it.effect("refuses an input that does not fit before anything is locked", () =>
    Effect.gen(function* () {
      const { tool } = yield* reader
      const inputs = [
        {},
        { path: 1 },
        { path: "../x" },
        { path: "a", head: 0 },
        { path: "a", head: 1, tail: 1 },
        { path: "a", offset: 1, tail: 1 },
        { path: "a", offset: 0 },
        { path: "a", lines: "3" },
        { path: "a", lines: "0-1" },
        "a",
        null
      ]
      for (const input of inputs) {
        const error = yield* Effect.flip(tool.prepare(input))
        assert.strictEqual(error._tag, "InvalidInput")
        assert.isAbove(error.problem.length, 10)
      }
      assert.match((yield* Effect.flip(tool.prepare({ path: "a", lines: "9-3" }))).problem, /ends before/u)
    })
  )

  it.effect("locks the file for reading, whatever its spelling", () =>
    Effect.gen(function* () {
      const { tool } = yield* reader
      const { locks } = yield* tool.prepare({ path: "/workspace/a/../b" })
      assert.deepStrictEqual(
        locks.map(({ resource, mode }) => [resource, mode]),
        [["file:b", "S"]]
      )
      assert.deepStrictEqual([tool.llm.name, tool.effect], ["choir.fs.read", "none"])
      assert.deepStrictEqual(Object.keys(tool.llm.input_schema["properties"] as object), ["path", "offset", "limit"])
    })
  )
})
