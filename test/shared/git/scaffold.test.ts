import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { Images } from "#src/choird/images/Images.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { temporaryFolder } from "../../support/gitRepo.ts"
import { folders, reposLayer } from "../../support/images.ts"

const STARTER = fileURLToPath(new URL("../../../docker/starter", import.meta.url))
const AGENT_STARTER = fileURLToPath(new URL("../../../docker/agent-starter", import.meta.url))

const git = (path: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", `safe.directory=${path}`, "-C", path, ...args], { encoding: "utf8" }).trim()

const everything = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

describe("createRepo", () => {
  it.effect.each(["worktree", "bare"] as const)("commits the starter files on main: %s", (kind) =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const path = join(root, "repos/agent-1")
      yield* createRepo(path, AGENT_STARTER, kind)
      assert.strictEqual(
        git(path, "log", "--format=%an <%ae> %cn <%ce>", "main"),
        "Choir <choir@localhost> Choir <choir@localhost>"
      )
      assert.strictEqual(git(path, "symbolic-ref", "HEAD"), "refs/heads/main")
      assert.deepStrictEqual(
        git(path, "ls-tree", "-r", "--name-only", "main").split("\n").sort(),
        everything(AGENT_STARTER)
      )
      assert.strictEqual(git(path, "rev-parse", "--is-bare-repository"), String(kind === "bare"))
      if (kind === "worktree") assert.strictEqual(git(path, "status", "--porcelain"), "")
      assert.deepStrictEqual(readdirSync(join(root, "repos")), ["agent-1"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect.each([
    ["", "Choir <choir@localhost>"],
    ["[user]\n\tname = Ada\n", "Ada <choir@localhost>"],
    ["[user]\n\tname = Ada\n\temail = ada@example.org\n", "Ada <ada@example.org>"]
  ] as const)("lets its owner commit, whatever git knows of them: %j", ([config, author]) =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const user = join(root, "gitconfig")
      writeFileSync(user, config)
      const { GIT_CONFIG_GLOBAL: before } = process.env
      yield* Effect.acquireRelease(
        Effect.sync(() => void (process.env["GIT_CONFIG_GLOBAL"] = user)),
        () =>
          Effect.sync(() => {
            if (before === undefined) delete process.env["GIT_CONFIG_GLOBAL"]
            else process.env["GIT_CONFIG_GLOBAL"] = before
          })
      )
      const path = join(root, "agent-1")
      yield* createRepo(path, AGENT_STARTER)
      writeFileSync(join(path, "README.md"), "new")
      git(path, "add", "--all")
      git(path, "commit", "--quiet", "--message", "new")
      assert.strictEqual(git(path, "log", "-1", "--format=%an <%ae>", "main"), author)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("takes an empty folder and refuses one with files", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      mkdirSync(join(root, "empty"))
      yield* createRepo(join(root, "empty"), AGENT_STARTER)
      mkdirSync(join(root, "full"))
      writeFileSync(join(root, "full/file"), "mine")
      assert.strictEqual((yield* Effect.flip(createRepo(join(root, "full"), AGENT_STARTER)))._tag, "RepoExists")
      assert.deepStrictEqual(readdirSync(join(root, "full")), ["file"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("leaves nothing behind when the starter is not there", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      yield* Effect.flip(createRepo(join(root, "x"), join(root, "none"), "bare"))
      assert.deepStrictEqual(readdirSync(root), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("gives repositories that build without a warning, with a tool that runs", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      yield* createRepo(join(root, "global"), STARTER)
      yield* createRepo(join(root, "agent"), AGENT_STARTER, "bare")
      const home = join(root, "home")
      const images = yield* Effect.provide(Images, Images.layer(home).pipe(Layer.provide([reposLayer(home), folders])))
      const image = yield* images.build(AgentId.make("agent-1"), {
        global: { url: join(root, "global"), ref: "main" },
        agent: { url: join(root, "agent"), ref: "main" }
      })
      assert.deepStrictEqual(image.warnings, [])
      const choir = join(image.path, "choir")
      assert.deepStrictEqual(everything(choir), [
        "SOUL-CORE.md",
        "SOUL.md",
        "USER.md",
        "skills/_index.json",
        "skills/backup-check.json",
        "skills/careful_change.json",
        "skills/code-change-with-tests.json",
        "skills/daily-brief.json",
        "skills/dependency-update.json",
        "skills/inbox-triage.json",
        "skills/meeting-notes.json",
        "skills/release-notes.json",
        "skills/research-with-sources.json",
        "skills/spend-report.json",
        "skills/summarize.json",
        "skills/todo-flagger.json",
        "skills/weekly-review.json",
        "tools/global/clock.now",
        "tools/global/clock.now.json",
        "version.json"
      ])
      assert.strictEqual(
        readFileSync(join(choir, "SOUL.md"), "utf8"),
        readFileSync(join(AGENT_STARTER, "identity/SOUL.md"), "utf8")
      )
      const out = execFileSync(join(choir, "tools/global/clock.now"), {
        input: "{}",
        encoding: "utf8",
        env: { PATH: "/usr/bin:/bin", TZ: "Asia/Kolkata" }
      })
      const { status, summary, output } = JSON.parse(out)
      assert.strictEqual(status, "success")
      assert.strictEqual(Date.parse(output.utc), output.unix_seconds * 1000)
      assert.strictEqual(Date.parse(output.local.replace(/(\d\d)$/u, ":$1")), output.unix_seconds * 1000)
      assert.include(summary, output.weekday)
      assert.isTrue(existsSync(join(home, "repos/agents/agent-1/HEAD")))
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
