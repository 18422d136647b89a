/** The environment of an agent's workspace, which its commands change while it works. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Environment } from "#src/agent/model/prompt/Environment.ts"

const setUp = Effect.gen(function* () {
  const workspace = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-environment-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", workspace, "-c", "user.name=a", "-c", "user.email=a@b", ...args])
  const environment = yield* Effect.provide(Environment, Environment.layer({ workspace, shell: "bash" }))
  return { workspace, git, lines: Effect.map(environment.text("m"), (text) => text.split("\n")) }
})

describe("the environment that models read", () => {
  it.effect("follows what commands do in the workspace", () =>
    Effect.gen(function* () {
      const { git, lines, workspace } = yield* setUp
      assert.includeMembers(yield* lines, ["git: not a repository", "shell: bash", "model: m"])
      git("init", "--quiet", "--initial-branch=main")
      writeFileSync(join(workspace, "AGENTS.md"), "Be brief.")
      const started = yield* lines
      assert.include(started, "git: branch main")
      assert.isTrue(started.some((line) => line.includes("AGENTS.md")))
      git("commit", "--quiet", "--allow-empty", "--message=x")
      git("checkout", "--quiet", "-b", "topic")
      rmSync(join(workspace, "AGENTS.md"))
      const later = yield* lines
      assert.include(later, "git: branch topic")
      assert.isFalse(later.some((line) => line.includes("AGENTS.md")))
      git("checkout", "--quiet", "--detach")
      assert.include(yield* lines, "git: no branch is checked out")
    })
  )

  it.effect("waits for no pipe and reads no device instead of git's files", () =>
    Effect.gen(function* () {
      const { git, lines, workspace } = yield* setUp
      git("init", "--quiet")
      const head = join(workspace, ".git", "HEAD")
      rmSync(head)
      execFileSync("mkfifo", [head])
      assert.include(yield* lines, "git: no branch is checked out")
      rmSync(head)
      symlinkSync("/dev/zero", head)
      assert.include(yield* lines, "git: no branch is checked out")
    })
  )
})
