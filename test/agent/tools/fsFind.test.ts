import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect } from "effect"
import { FIND_NAMES_MAX, fsFind } from "#src/agent/tools/fsFind.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const finder = Effect.gen(function* () {
  const { root, outside } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(fsFind(rgPath), yield* toolServices(root))
  const find = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  /** Makes a file that was changed so many seconds after 1970. */
  const put = (name: string, changed: number) => {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), "x")
    utimesSync(join(root, name), changed, changed)
  }
  return { root, outside, tool, find, put }
})

describe("choir.fs.find", () => {
  it.live("names the files that a glob matches, the last changed first", () =>
    Effect.gen(function* () {
      const { find, put } = yield* finder
      put("src/a.ts", 10)
      put("src/deep/b.ts", 30)
      put("c.ts", 20)
      put("d.md", 40)
      const all = yield* find({ glob: "*.ts" })
      assert.deepStrictEqual(all, {
        status: "success",
        summary: "3 files, the last changed first",
        output: { paths: ["src/deep/b.ts", "c.ts", "src/a.ts"], truncated: false },
        files: { shows: ["src/deep/b.ts", "c.ts", "src/a.ts"] }
      })
      assert.deepInclude((yield* find({ glob: "*.ts", path: "src/" })).output, { paths: ["src/deep/b.ts", "src/a.ts"] })
      assert.deepInclude((yield* find({ glob: "src/*.ts" })).output, { paths: ["src/a.ts"] })
      assert.deepInclude((yield* find({ glob: "*.py" })).output, { paths: [] })
    })
  )

  it.live("leaves out what is ignored, of git, of the staging area or behind a link (R39)", () =>
    Effect.gen(function* () {
      const { find, outside, put, root } = yield* finder
      for (const name of [".git/x.ts", ".choirtmp/x.ts", "node_modules/x.ts", ".hidden.ts"]) put(name, 1)
      writeFileSync(join(root, ".gitignore"), "node_modules\n")
      symlinkSync(outside, join(root, "folder"))
      assert.deepInclude((yield* find({ glob: "*.ts" })).output, { paths: [".hidden.ts"] })
      assert.deepInclude((yield* find({ glob: "file" })).output, { paths: [] })
      const { status, summary } = yield* find({ glob: "*", path: "folder" })
      assert.strictEqual(status, "error")
      assert.match(summary, /symbolic link/u)
    })
  )

  it.live("names no more than its limit, and says so", () =>
    Effect.gen(function* () {
      const { find, put } = yield* finder
      for (let at = 0; at <= FIND_NAMES_MAX; at++) put(`${at}.ts`, at)
      const { output, summary } = yield* find({ glob: "*.ts" })
      assert.strictEqual(summary, `${FIND_NAMES_MAX} or more files, the last changed first`)
      const { paths } = output as { readonly paths: ReadonlyArray<string> }
      assert.deepStrictEqual([paths.length, paths[0]], [FIND_NAMES_MAX, `${FIND_NAMES_MAX}.ts`])
    })
  )

  it.live("takes a glob for nothing else, and says what is wrong with one", () =>
    Effect.gen(function* () {
      const { find, put, tool } = yield* finder
      put("a", 1)
      assert.deepInclude((yield* find({ glob: "--pre=evil" })).output, { paths: [] })
      assert.match((yield* find({ glob: "[" })).summary, /glob/u)
      for (const input of [{}, { glob: "" }, { glob: "a\0" }, { glob: "*", path: ".." }])
        assert.strictEqual((yield* Effect.flip(tool.prepare(input)))._tag, "InvalidInput")
      const { locks } = yield* tool.prepare({ glob: "*" })
      assert.deepStrictEqual([locks[0]?.resource, locks[0]?.mode, tool.effect], ["workspace", "S", "none"])
    })
  )
})
