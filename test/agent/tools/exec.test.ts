import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { exec } from "#src/agent/tools/exec.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const shellIn = Effect.fnUntraced(function* (root: string) {
  const tool = yield* Effect.provideContext(exec, yield* toolServices(root))
  const run = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  return { root, tool, run }
})

const shell = Effect.flatMap(temporaryWorkspace, ({ root }) => shellIn(root))

/** A workspace outside of /tmp, which every command may write to. */
const shellOutside = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync("/var/tmp/choir-exec-")),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  for (const name of ["src", "docs", ".choirtmp/edge"]) mkdirSync(join(root, name), { recursive: true })
  return yield* shellIn(root)
})

const locksOf = (prepared: { readonly locks: ReadonlyArray<{ readonly resource: string; readonly mode: string }> }) =>
  prepared.locks.map(({ mode, resource }) => `${resource} ${mode}`)

describe("choir.exec", () => {
  it.live("runs a command in the workspace", () =>
    Effect.gen(function* () {
      const { root, run } = yield* shell
      const { status, output } = yield* run({ command: "echo text > file; pwd; echo warned >&2" })
      assert.deepStrictEqual([status, output], ["success", { exit_code: 0, stdout: `${root}\n`, stderr: "warned\n" }])
      assert.strictEqual(readFileSync(join(root, "file"), "utf8"), "text\n")
    })
  )

  it.live("is an error when the command fails, with the exit code of the shell's convention", () =>
    Effect.gen(function* () {
      const { run } = yield* shell
      const failed = yield* run({ command: "echo out; exit 7" })
      assert.deepStrictEqual([failed.status, failed.output], ["error", { exit_code: 7, stdout: "out\n", stderr: "" }])
      assert.deepInclude((yield* run({ command: "kill -TERM $$" })).output, { exit_code: 143 })
    })
  )

  it.live("gives the same result for the same output, so that repetitions are seen (E11)", () =>
    Effect.gen(function* () {
      const { run } = yield* shell
      assert.deepStrictEqual(yield* run({ command: "echo out" }), yield* run({ command: "echo out" }))
    })
  )

  it.live("E12 kills a command at its timeout and keeps what it printed", () =>
    Effect.gen(function* () {
      const { run } = yield* shell
      const { status, summary, output } = yield* run({ command: "echo out; sleep 60", timeout_ms: 1000 })
      assert.deepStrictEqual([status, summary], ["timeout", "the command was killed after 1000 ms"])
      assert.deepStrictEqual(output, { exit_code: 137, stdout: "out\n", stderr: "" })
    })
  )

  it.live("says that the shell could not be started in a workspace that is gone", () =>
    Effect.gen(function* () {
      const { root, run } = yield* shell
      yield* run({ command: `rmdir ${root}` })
      const { status, summary } = yield* run({ command: "true" })
      assert.strictEqual(status, "error")
      assert.match(summary, /could not be started \(ENOENT\)/u)
    })
  )

  it.effect("locks the whole workspace, for as long as the command may run", () =>
    Effect.gen(function* () {
      const { tool } = yield* shell
      const { locks, timeout_ms } = yield* tool.prepare({ command: "true" })
      assert.deepStrictEqual(
        locks.map(({ resource, mode }) => [resource, mode]),
        [["workspace", "X"]]
      )
      assert.isAbove(timeout_ms, 120_000)
      assert.strictEqual(tool.effect, "workspace")
    })
  )

  it.effect("refuses commands that no shell could be given", () =>
    Effect.gen(function* () {
      const { tool } = yield* shell
      const inputs = [
        {},
        { command: "" },
        { command: "echo \0" },
        { command: "x".repeat(200_000) },
        { command: "true", timeout_ms: 0 },
        { command: "true", timeout_ms: 600_001 },
        { command: ["true"] }
      ]
      for (const input of inputs) assert.strictEqual((yield* Effect.flip(tool.prepare(input)))._tag, "InvalidInput")
    })
  )

  it.live("runs the longest command that it accepts", () =>
    Effect.gen(function* () {
      const { run } = yield* shell
      const command = `: ${"x".repeat(128 * 1024 - 3)}`
      assert.strictEqual((yield* run({ command })).status, "success")
    })
  )

  it.live("runs in the folder that it names, locks that alone, and can change nothing outside of it", () =>
    Effect.gen(function* () {
      const { root, run, tool } = yield* shellOutside
      const named = { cwd: "src", paths: ["docs"] }
      assert.deepStrictEqual(locksOf(yield* tool.prepare({ command: "true", ...named })), ["file:src X", "file:docs X"])
      const ran = yield* run({
        command: "pwd; echo a > made; echo b > ../docs/made; echo c > /tmp/$$; rm /tmp/$$",
        ...named
      })
      assert.deepStrictEqual(
        [ran.status, ran.output],
        ["success", { exit_code: 0, stdout: `${root}/src\n`, stderr: "" }]
      )
      assert.strictEqual(readFileSync(join(root, "docs/made"), "utf8"), "b\n")
      const refused = yield* run({ command: "echo d > ../made", ...named })
      assert.strictEqual(refused.status, "error")
      assert.match(refused.summary, /^exit code \d+; it can change nothing outside of src, docs$/u)
      assert.isFalse(existsSync(join(root, "made")))
    })
  )

  it.live("shares what it reads only, and can change nothing of it", () =>
    Effect.gen(function* () {
      const { root, run, tool } = yield* shellOutside
      const prepared = yield* tool.prepare({ command: "true", reads_only: true, network: false })
      assert.deepStrictEqual([locksOf(prepared), prepared.besideJobs], [["workspace S"], true])
      const inFolder = yield* tool.prepare({ command: "true", reads_only: true, cwd: "docs" })
      assert.deepStrictEqual(locksOf(inFolder), ["file:docs S"])
      for (const command of ["echo x > docs/x", "rm -r src", "mkdir made", "mv src other"]) {
        const { status, summary } = yield* run({ command, reads_only: true })
        assert.strictEqual(status, "error", command)
        assert.match(summary, /it can change nothing in the workspace$/u, command)
      }
      assert.deepInclude(yield* run({ command: "ls; ls nowhere 2>/dev/null; true", reads_only: true }), {
        status: "success"
      })
      assert.isTrue(existsSync(join(root, "src")))
    })
  )

  it.live("may change the folder of edge beside jobs, and a network makes it wait as before", () =>
    Effect.gen(function* () {
      const { tool } = yield* shellOutside
      const beside = (input: object) =>
        Effect.map(tool.prepare({ command: "true", network: false, ...input }), ({ besideJobs }) => besideJobs)
      assert.isTrue(yield* beside({ cwd: ".choirtmp/edge" }))
      assert.isFalse(yield* beside({ cwd: ".choirtmp/edge", paths: ["src"] }))
      assert.isFalse(yield* beside({ cwd: ".choirtmp/edge/../.." }))
      assert.isFalse(yield* beside({ cwd: "src" }))
      assert.isFalse(yield* beside({}))
      assert.isFalse(yield* beside({ reads_only: true, network: true }))
    })
  )

  it.live("says which folder is not there, and follows no link out of the workspace", () =>
    Effect.gen(function* () {
      const { root, run } = yield* shellOutside
      symlinkSync("/etc", join(root, "link"))
      for (const cwd of ["nowhere", "link", "../..", "/etc"]) {
        const { status, summary } = yield* run({ command: "pwd", cwd })
        assert.strictEqual(status, "error", summary)
        assert.include(summary, cwd)
      }
    })
  )

  it.live("locks the whole workspace where the kernel cannot keep it to its folders", () =>
    Effect.gen(function* () {
      const { tool } = yield* shell
      for (const input of [{ cwd: "src" }, { reads_only: true }]) {
        const prepared = yield* tool.prepare({ command: "true", ...input })
        assert.deepStrictEqual([locksOf(prepared), prepared.besideJobs], [["workspace X"], false])
      }
    })
  )
})
