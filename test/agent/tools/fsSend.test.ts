import { execFileSync } from "node:child_process"
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SENT_COPIES, SENT_FILE_BYTES_MAX } from "#schema/SentFile.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSend } from "#src/agent/tools/fsSend.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const setUp = Effect.gen(function* () {
  const { outside, root } = yield* temporaryWorkspace
  const services = yield* toolServices(root)
  const [command, read, send, write] = yield* Effect.provideContext(
    Effect.all([exec, fsRead, fsSend, fsWrite]),
    services
  )
  const run = Effect.fnUntraced(function* (tool: typeof command, input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  const shell = (line: string) => run(command, { command: line })
  const copyOf = (sha256: string | undefined) => join(root, SENT_COPIES, sha256 ?? "none")
  mkdirSync(join(root, ".choirtmp/send"), { recursive: true })
  return { root, outside, shell, copyOf, command, read, send, write, run }
})

const paths = (files: ReadonlyArray<{ readonly path: string }> = []) => files.map(({ path }) => path)

describe("a file that a tool leaves in .choirtmp/send", () => {
  it.live("goes to the user once the result names it on a line of its own, with the bytes that it had then", () =>
    Effect.gen(function* () {
      const { copyOf, shell } = yield* setUp
      const { notes, output, sends } = yield* shell(
        "printf one > .choirtmp/send/a.txt; echo done; echo ./.choirtmp/send/a.txt"
      )
      assert.deepStrictEqual(paths(sends?.files), [".choirtmp/send/a.txt"])
      assert.deepStrictEqual(notes, ["sent to the user: a.txt"])
      assert.deepInclude(output, { exit_code: 0 })
      yield* shell("printf two > .choirtmp/send/a.txt")
      assert.strictEqual(readFileSync(copyOf(sends?.files[0]?.sha256), "utf8"), "one")
    })
  )

  it.live("is not sent where the result does not name it, the command failed, or it was there before", () =>
    Effect.gen(function* () {
      const { read, run, shell } = yield* setUp
      for (const line of [
        "echo x > .choirtmp/send/a.txt; echo it is .choirtmp/send/a.txt",
        "ls -d .choirtmp/send/*",
        "echo y > .choirtmp/send/b.txt; echo .choirtmp/send/b.txt; exit 1",
        "echo .choirtmp/send/none.txt; echo /etc/passwd; echo .choirtmp/send/../../secret; echo .choirtmp/send/.kept"
      ])
        assert.isUndefined((yield* shell(line)).sends, line)
      assert.isUndefined((yield* run(read, { path: ".choirtmp/send/a.txt" })).sends)
    })
  )

  it.live("is sent when choir.fs.write made it", () =>
    Effect.gen(function* () {
      const { run, write } = yield* setUp
      const inFolder = yield* run(write, { path: ".choirtmp/send/n.md", content: "# N", mode: "overwrite" })
      assert.deepStrictEqual(paths(inFolder.sends?.files), [".choirtmp/send/n.md"])
      const beside = yield* run(write, { path: "n.md", content: "# N", mode: "overwrite" })
      assert.isUndefined(beside.sends)
    })
  )

  it.live("is refused in words where it is a link, a second name, a pipe, empty or too large", () =>
    Effect.gen(function* () {
      const { outside, root, shell } = yield* setUp
      const folder = join(root, ".choirtmp/send")
      const { notes, sends } = yield* shell(
        [
          `cd .choirtmp/send`,
          `ln -s ${join(outside, "file")} link.txt`,
          `ln ${join(outside, "file")} second.txt`,
          "mkfifo pipe.txt",
          ": > empty.txt",
          `truncate -s ${SENT_FILE_BYTES_MAX + 1} large.bin`,
          "echo good > good.txt",
          "for f in *; do echo .choirtmp/send/$f; done"
        ].join(" && ")
      )
      assert.deepStrictEqual(paths(sends?.files), [".choirtmp/send/good.txt"])
      const said = (notes ?? []).join("\n")
      for (const words of [
        /link\.txt" is a symbolic link/u,
        /second\.txt" is a file with a second name/u,
        /pipe\.txt" is not a regular file/u,
        /empty\.txt" is empty/u,
        /large\.bin" is larger than the 52,428,800 bytes that can be sent/u
      ])
        assert.match(said, words)
      assert.isTrue(existsSync(join(folder, "link.txt")))
    })
  )

  it.live("is one of at most ten of a call; the model reads that the others were not sent", () =>
    Effect.gen(function* () {
      const { shell } = yield* setUp
      const { notes, sends } = yield* shell(
        "for n in $(seq 12); do echo $n > .choirtmp/send/$n.txt; echo .choirtmp/send/$n.txt; done"
      )
      assert.lengthOf(sends?.files ?? [], 10)
      assert.strictEqual(notes?.at(-1), "not sent: more than 10 files of one call")
    })
  )
})

describe("choir.fs.send", () => {
  it.live("sends files of the workspace with a caption, and keeps their bytes", () =>
    Effect.gen(function* () {
      const { copyOf, root, run, send } = yield* setUp
      writeFileSync(join(root, "a.pdf"), "%PDF-1")
      mkdirSync(join(root, "docs"))
      writeFileSync(join(root, "docs/b.png"), "picture")
      const outcome = yield* run(send, { paths: ["a.pdf", "docs/b.png", "a.pdf"], caption: "both", as_document: true })
      assert.deepStrictEqual([outcome.status, outcome.summary], ["success", "sent to the user: a.pdf, b.png"])
      assert.strictEqual(outcome.sends?.caption, "both")
      assert.deepStrictEqual(
        outcome.sends?.files.map(({ as, bytes, path }) => [path, bytes, as]),
        [
          ["a.pdf", 6, "document"],
          ["docs/b.png", 7, "document"]
        ]
      )
      assert.strictEqual(readFileSync(copyOf(outcome.sends?.files[0]?.sha256), "utf8"), "%PDF-1")
    })
  )

  it.live("sends nothing at all where one of the files cannot be sent, and nothing outside the workspace", () =>
    Effect.gen(function* () {
      const { outside, root, run, send } = yield* setUp
      writeFileSync(join(root, "good"), "x")
      symlinkSync(outside, join(root, "way"))
      linkSync(join(outside, "file"), join(root, "second"))
      execFileSync("mkfifo", [join(root, "pipe")])
      writeFileSync(join(root, "large"), "")
      truncateSync(join(root, "large"), SENT_FILE_BYTES_MAX + 1)
      for (const path of ["missing", "way/file", "second", "pipe", "large", "way"]) {
        const { sends, status } = yield* run(send, { paths: ["good", path] })
        assert.deepStrictEqual([status, sends], ["error", undefined], path)
      }
      for (const path of ["../outside/file", "/etc/passwd", join(outside, "file"), ""])
        assert.strictEqual((yield* Effect.exit(run(send, { paths: [path] })))._tag, "Failure", path)
    })
  )
})
