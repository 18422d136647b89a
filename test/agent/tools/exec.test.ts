import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { exec } from "#src/agent/tools/exec.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const shell = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(exec, yield* toolServices(root))
  const run = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  return { root, tool, run }
})

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
})
