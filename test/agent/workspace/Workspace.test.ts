import { execFileSync } from "node:child_process"
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { FOLDER_ENTRIES_MAX, Workspace } from "#src/agent/workspace/Workspace.ts"
import { OUTSIDE_TEXT, temporaryWorkspace } from "../../support/workspace.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"

const inWorkspace = <A, E>(
  use: (at: {
    readonly workspace: Workspace["Service"]
    readonly root: string
    readonly outside: string
  }) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const { root, outside } = yield* temporaryWorkspace
    const run = Effect.flatMap(Workspace, (workspace) => use({ workspace, root, outside }))
    return yield* Effect.provide(run, Workspace.layer({ root }))
  })

const isDone = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.map(Effect.result(work), Result.isSuccess)
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8")
const put = (content: string) => () => Result.succeed(Buffer.from(content))
const HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

describe("Workspace", () => {
  it.effect("reads a file under each of its spellings, as one path", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root }) {
        mkdirSync(join(root, "a"))
        writeFileSync(join(root, "a/b"), "hello")
        for (const path of ["a/b", "./a//b", "a/./b", "a/x/../b", "/workspace/a/b", "//workspace//a/b"]) {
          const file = yield* workspace.read(path)
          assert.deepStrictEqual([file.path, text(file.bytes), file.sha256], ["a/b", "hello", HELLO_SHA256])
        }
      })
    )
  )

  it.effect("creates a file with its folders, and replaces it without changing its mode", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root }) {
        const path = join(root, "a/b/c")
        const first = yield* workspace.update("a/b/c", put("hello"))
        assert.deepStrictEqual(first, { path: "a/b/c", after: HELLO_SHA256, made: "a" })
        assert.strictEqual(statSync(path).mode & 0o777, 0o644)
        execFileSync("chmod", ["6750", path])
        const second = yield* workspace.update("a/b/c", (current) =>
          Result.succeed(Buffer.from(`${text(current?.bytes ?? new Uint8Array())}!`))
        )
        assert.strictEqual(second.before, HELLO_SHA256)
        assert.strictEqual(readFileSync(path, "utf8"), "hello!")
        assert.strictEqual(statSync(path).mode & 0o7777, 0o750)
        assert.deepStrictEqual(readdirSync(join(root, "a/b")), ["c"])
      })
    )
  )

  it.effect("leaves no trace of a refused change", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root }) {
        assert.strictEqual(yield* Effect.flip(workspace.update("new/file", () => Result.fail("no"))), "no")
        const large = () => Result.succeed(Buffer.alloc(WORKSPACE_FILE_BYTES_MAX + 1))
        assert.strictEqual((yield* Effect.flip(workspace.update("new/file", large)))._tag, "PathRefused")
        assert.deepStrictEqual(readdirSync(root), [])
      })
    )
  )

  it.effect("refuses everything that is not a plain file of its own, in words", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root, outside }) {
        mkdirSync(join(root, "folder"))
        writeFileSync(join(root, "file"), "inside")
        writeFileSync(join(root, "large"), Buffer.alloc(WORKSPACE_FILE_BYTES_MAX + 1))
        symlinkSync("file", join(root, "link-inside"))
        symlinkSync(join(outside, "file"), join(root, "link-outside"))
        symlinkSync(outside, join(root, "link-folder"))
        symlinkSync("nothing", join(root, "link-dangling"))
        linkSync(join(outside, "file"), join(root, "hard"))
        execFileSync("mkfifo", [join(root, "fifo")])
        const server = createServer()
        yield* Effect.callback<void>((resume) => {
          server.listen(join(root, "socket"), () => resume(Effect.void))
        })
        const expected = {
          missing: "not_found",
          "missing/file": "not_found",
          folder: "folder",
          ".": "folder",
          "file/child": "not_a_folder",
          large: "too_large",
          "link-inside": "link",
          "link-outside": "link",
          "link-folder/file": "link",
          "link-dangling": "link",
          hard: "hard_link",
          fifo: "special",
          socket: "special",
          "../outside/file": "outside",
          "/etc/passwd": "outside",
          "/workspacex/file": "outside",
          "/workspace/../outside/file": "outside",
          "": "malformed",
          "a\0b": "malformed",
          "a\ud800": "malformed",
          ["n".repeat(300)]: "too_long",
          ["n/".repeat(3000)]: "too_long"
        }
        for (const [path, reason] of Object.entries(expected)) {
          const read = yield* Effect.flip(workspace.read(path))
          assert.strictEqual(read.reason, reason, path)
          assert.isBelow(read.message.length, 400)
          if (reason === "not_found") continue
          const write = yield* Effect.flip(workspace.update(path, put("written")))
          assert.strictEqual(write.reason, reason, path)
        }
        server.close()
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
        assert.deepStrictEqual(readdirSync(outside), ["file"])
        assert.isFalse(existsSync(join(root, "nothing")))
      })
    )
  )

  it.effect("keeps private files, the newest of them, within a number and a size (R49)", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root }) {
        const keep = Effect.fnUntraced(function* (
          name: string,
          bytes: number,
          limits: { files: number; bytes: number }
        ) {
          yield* workspace.keep(`kept/${name}`, Buffer.alloc(bytes), limits)
          const age = Number(name.slice(1))
          utimesSync(join(root, "kept", name), age, age)
          return readdirSync(join(root, "kept")).sort()
        })
        mkdirSync(join(root, "kept/folder"), { recursive: true })
        symlinkSync("/etc/hostname", join(root, "kept/link"))
        const others = ["folder", "link"]
        yield* keep("f1", 10, { files: 3, bytes: 100 })
        yield* keep("f2", 10, { files: 3, bytes: 100 })
        assert.deepStrictEqual(yield* keep("f3", 10, { files: 3, bytes: 100 }), ["f1", "f2", "f3", ...others])
        assert.deepStrictEqual(yield* keep("f4", 10, { files: 3, bytes: 100 }), ["f2", "f3", "f4", ...others])
        assert.deepStrictEqual(yield* keep("f5", 80, { files: 9, bytes: 100 }), ["f3", "f4", "f5", ...others])
        assert.deepStrictEqual(yield* keep("f6", 200, { files: 9, bytes: 100 }), ["f6", ...others])
        assert.strictEqual(statSync(join(root, "kept/f6")).mode & 0o777, 0o600)
      })
    )
  )

  it.effect("keeps nothing through a link, and no more than a file may hold", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root, outside }) {
        symlinkSync(outside, join(root, "link"))
        const limits = { files: 1, bytes: 1 }
        const refused = yield* Effect.flip(workspace.keep("link/file", Buffer.from("x"), limits))
        assert.strictEqual(refused.reason, "link")
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
        const large = yield* Effect.flip(workspace.keep("file", Buffer.alloc(WORKSPACE_FILE_BYTES_MAX + 1), limits))
        assert.strictEqual(large.reason, "too_large")
        assert.strictEqual((yield* Effect.flip(workspace.keep("../file", Buffer.from("x"), limits))).reason, "outside")
      })
    )
  )

  it.effect(
    "lists odd names on one line each, as a call's input takes them, and refuses a path in a shell's home",
    () =>
      inWorkspace(
        Effect.fnUntraced(function* ({ workspace, root }) {
          writeFileSync(join(root, "two\nlines"), "x")
          writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x62, 0xff])]), "x")
          const { entries } = yield* workspace.list(".")
          const odd = String.raw`"two\nlines"`
          assert.include(entries, odd)
          assert.isTrue(entries.some((name) => name.includes("not UTF-8: only a command can open it")))
          assert.strictEqual(new TextDecoder().decode((yield* workspace.read(JSON.parse(odd) as string)).bytes), "x")
          for (const path of ["~", "~/notes.txt"]) {
            const error = yield* Effect.flip(workspace.read(path))
            assert.match(error.message, /begins with ~.*such as notes\.txt/u)
          }
        })
      )
  )

  it.effect("lists a folder by what its entries are, up to a limit", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root, outside }) {
        mkdirSync(join(root, "b"))
        writeFileSync(join(root, "a"), "")
        symlinkSync(outside, join(root, "c"))
        assert.deepStrictEqual(yield* workspace.list("."), { entries: ["a", "b/", "c@"], truncated: false })
        assert.strictEqual((yield* Effect.flip(workspace.list("c"))).reason, "link")
        assert.strictEqual((yield* Effect.flip(workspace.list("a"))).reason, "not_a_folder")
        for (let index = 0; index <= FOLDER_ENTRIES_MAX; index++) writeFileSync(join(root, "b", `${index}`), "")
        const { entries, truncated } = yield* workspace.list("b")
        assert.deepStrictEqual([entries.length, truncated], [FOLDER_ENTRIES_MAX, true])
      })
    )
  )

  it.effect("gives children a folder that stays the same when its name is taken by a link", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root, outside }) {
        mkdirSync(join(root, "folder/inner"), { recursive: true })
        const { path, cwd } = yield* workspace.folder("/workspace/folder")
        execFileSync("sh", ["-c", `mv folder moved && ln -s ${outside} folder`], { cwd: root })
        assert.strictEqual(path, "folder")
        assert.strictEqual(execFileSync("ls", { cwd, encoding: "utf8" }), "inner\n")
      }, Effect.scoped)
    )
  )

  it.live("keeps no descriptor open", () =>
    inWorkspace(
      Effect.fnUntraced(function* ({ workspace, root }) {
        mkdirSync(join(root, "a/b"), { recursive: true })
        const count = () => readdirSync("/proc/self/fd").length
        const before = count()
        const worked = Effect.fnUntraced(function* (path: string) {
          const read = yield* isDone(workspace.read(path))
          const updated = yield* isDone(workspace.update(path, put("x")))
          const listed = yield* isDone(workspace.list(path))
          const opened = yield* isDone(Effect.scoped(workspace.folder(path)))
          return [read, updated, listed, opened].map((done) => (done ? "y" : "n")).join("")
        })
        const seen = yield* Effect.forEach(["a/b/c", "a/b/c", "a/b", "a/x/y", "../x", "a/b/c/d"], worked)
        // Read, update, list, folder: each is refused somewhere, and works somewhere.
        assert.deepStrictEqual(seen, ["nynn", "yynn", "nnyy", "nynn", "nnnn", "nnnn"])
        // They are closed beside what goes on, as are those of the tests before this one.
        yield* Effect.repeat(Effect.sleep("1 millis"), { until: () => count() <= before })
      })
    )
  )

  it.effect("says which workspace cannot be opened", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Effect.provide(Effect.asVoid(Workspace), Workspace.layer({ root: "/does/not/exist" }))
      )
      assert.include(error.message, "/does/not/exist")
    })
  )
})
