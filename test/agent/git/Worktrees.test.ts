import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema } from "effect"
import { JobBranch } from "#schema/Core.ts"
import { coreLane, JobName } from "#schema/Ids.ts"
import { layerWorktrees, Worktrees } from "#src/agent/git/Worktrees.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { FOREIGN_NAMES } from "../../support/foreignNames.ts"
import { atSize } from "../../support/size.ts"
import { temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const leftOut = ensureDebianPackages(["git"], "worktrees")

/** Names of which git writes one into a line of its file; each asks git four times. */
const LINES = FOREIGN_NAMES.filter((each) => !each.includes("\n"))
const EVERY = 4
const NAMES = atSize(
  LINES.filter((_, at) => at % EVERY === 0),
  LINES.filter((_, at) => at % EVERY !== 0)
)

const dig = JobName.make("dig")
const rake = JobName.make("rake")

const GIT = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgSign=false"]
const gitIn = (cwd: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", [...GIT, ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] })
    .toString()
    .trim()

const commitIn = (cwd: string, name: string, text: string): void => {
  writeFileSync(join(cwd, name), text)
  gitIn(cwd, "add", "--all")
  gitIn(cwd, "commit", "--quiet", "--message", `Write ${name}`)
}

/** A workspace, and the worktrees of its agent's jobs. */
const inWorkspace = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const context = yield* Layer.build(Layer.provide(layerWorktrees, Layer.succeedContext(yield* toolServices(root))))
  return { root, trees: yield* Effect.provide(Worktrees, context) }
})

/** The same with one commit of `a.txt` on `main`. */
const inRepository = Effect.tap(inWorkspace, ({ root }) =>
  Effect.sync(() => {
    gitIn(root, "init", "--quiet", "--initial-branch=main")
    commitIn(root, "a.txt", "first\n")
  })
)

const reasonOf = <A>(effect: Effect.Effect<A, { readonly reason: string }>) =>
  Effect.map(Effect.result(effect), (result) => (Result.isFailure(result) ? result.failure.reason : ""))

describe.skipIf(leftOut !== undefined)("the worktree of a job", () => {
  it.live(
    "begins at what the workspace has, is apart from it, and goes when its work is committed; the branch stays",
    () =>
      Effect.gen(function* () {
        const { root, trees } = yield* inRepository
        yield* trees.open({ job_name: dig, branch: "work/dig" })
        assert.strictEqual(trees.of(coreLane(dig)), ".worktrees/dig")
        const folder = join(root, ".worktrees/dig")
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "first\n")
        commitIn(folder, "b.txt", "dug\n")
        assert.isFalse(existsSync(join(root, "b.txt")))
        assert.strictEqual(gitIn(root, "status", "--porcelain"), "")
        const left = yield* trees.look({ job_name: dig, branch: "work/dig" }, [])
        assert.deepInclude(left, { branch: "work/dig", commits: 1, uncommitted: 0, conflicts: [] })
        yield* trees.close(dig)
        assert.isFalse(existsSync(folder))
        assert.isUndefined(trees.of(coreLane(dig)))
        assert.strictEqual(gitIn(root, "rev-parse", "work/dig"), left?.commit)
        yield* trees.open({ job_name: rake, branch: "work/dig" })
        assert.isTrue(existsSync(join(root, ".worktrees/rake/b.txt")))
      })
  )

  it.live("is refused without the words that somebody wrote into git's files", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      yield* trees.open({ job_name: rake, branch: "work" })
      const own = join(root, ".git/worktrees/rake/gitdir")
      for (const name of NAMES) {
        writeFileSync(own, `/tmp/${name.replaceAll("/", "_")}/.git\n`)
        const taken = yield* reasonOf(trees.check({ job_name: dig, branch: "work" }))
        assert.strictEqual(
          taken,
          "the branch work is checked out in another worktree: choose another, or wait for its job to end"
        )
      }
      writeFileSync(own, `${join(root, ".worktrees/rake/.git")}\n`)
      assert.include(yield* reasonOf(trees.check({ job_name: dig, branch: "work" })), "in .worktrees/rake: choose")
      // Where the branch's lock cannot be made, git names the file.
      mkdirSync(join(root, ".git/refs/heads", `a.lock`), { recursive: true })
      const failed = yield* reasonOf(trees.open({ job_name: dig, branch: "a" }))
      assert.match(
        failed,
        /^git could not make a worktree: git ended with exit code \d+; the agent's log has its words$/u
      )
    })
  )

  it.live("stays where something is not committed, for the same branch again and for no other", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      yield* trees.open({ job_name: dig, branch: "one" })
      writeFileSync(join(root, ".worktrees/dig/new.txt"), "not yet\n")
      assert.deepInclude(yield* trees.look({ job_name: dig, branch: "one" }, []), { commits: 0, uncommitted: 1 })
      yield* trees.close(dig)
      yield* trees.sweep(new Set())
      assert.isTrue(existsSync(join(root, ".worktrees/dig/new.txt")))
      assert.match(
        yield* reasonOf(trees.check({ job_name: dig, branch: "two" })),
        /uncommitted work of an earlier job/u
      )
      yield* trees.open({ job_name: dig, branch: "one" })
      assert.isTrue(existsSync(join(root, ".worktrees/dig/new.txt")))
    })
  )

  it.live("is refused with the way out where there is no repository, no commit, or the branch is taken", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inWorkspace
      const job = { job_name: dig, branch: "work" }
      assert.match(
        yield* reasonOf(trees.check(job)),
        /^the workspace is not a git repository, .+ git init and commit first$/u
      )
      gitIn(root, "init", "--quiet", "--initial-branch=main")
      assert.match(yield* reasonOf(trees.check(job)), /has no commit yet: commit first/u)
      commitIn(root, "a.txt", "first\n")
      assert.match(
        yield* reasonOf(trees.check({ job_name: dig, branch: "main" })),
        /the branch main is checked out in the workspace: choose another/u
      )
      yield* trees.open(job)
      assert.match(
        yield* reasonOf(trees.check({ job_name: rake, branch: "work" })),
        /the branch work is checked out in \.worktrees\/dig: .+wait for its job to end/u
      )
      mkdirSync(join(root, ".worktrees/rake"))
      assert.match(yield* reasonOf(trees.check({ job_name: rake, branch: "other" })), /exists and is not a worktree/u)
      mkdirSync(join(root, "deep"))
      const inner = yield* Layer.build(
        Layer.provide(layerWorktrees, Layer.succeedContext(yield* toolServices(join(root, "deep"))))
      )
      const below = yield* Effect.provide(Worktrees, inner)
      assert.match(yield* reasonOf(below.check(job)), /is not a git repository/u)
    })
  )

  it.live("takes no name that git would read as anything but a branch", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      const texts = [
        "-f|--upload-pack=touch x|a..b|a b|a.lock|a/.b|a//b|/a|a/|a.|a~1|a^|a:b|a?|a*|a[b|a\\b|a@{1}|@|../../x|$(id)|`id`|a;b|ä|",
        "a\nb",
        "a\0b",
        "a".repeat(101)
      ]
      const hostile = texts.flatMap((text) => text.split("|"))
      assert.deepStrictEqual(hostile.filter(Schema.is(JobBranch)), [])
      for (const branch of ["HEAD", "-f", "a..b", "@{-1}"])
        assert.isNotEmpty(yield* reasonOf(trees.open({ job_name: dig, branch })), branch)
      assert.strictEqual(gitIn(root, "branch", "--format=%(refname:short)"), "main")
    })
  )

  it.live("runs no hook, filter or monitor that the repository configures", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      const ran = join(root, ".git/ran")
      const program = join(root, ".git/program")
      writeFileSync(program, `#!/bin/sh\necho "$0" >> ${ran}\ncat\n`)
      chmodSync(program, 0o755)
      writeFileSync(join(root, ".gitattributes"), "*.txt filter=bad merge=bad\n")
      gitIn(root, "add", "--all")
      gitIn(root, "commit", "--quiet", "--message", "Ask for programs")
      mkdirSync(join(root, ".git/hooks"), { recursive: true })
      for (const hook of ["post-checkout", "reference-transaction", "post-index-change"]) {
        writeFileSync(join(root, ".git/hooks", hook), `#!/bin/sh\necho ${hook} >> ${ran}\n`)
        chmodSync(join(root, ".git/hooks", hook), 0o755)
      }
      gitIn(root, "config", "filter.bad.smudge", program)
      gitIn(root, "config", "filter.bad.clean", program)
      gitIn(root, "config", "filter.bad.required", "true")
      gitIn(root, "config", "merge.bad.driver", `${program} %A`)
      gitIn(root, "config", "core.fsmonitor", program)
      // On a command line the name would end at its sign, and a worktree has a configuration of its own.
      writeFileSync(join(root, ".gitattributes"), "*.txt filter=bad merge=bad\n*.md filter=a=b\n*.rst filter=own\n")
      for (const name of ["a.md", "a.rst"]) writeFileSync(join(root, name), "x\n")
      gitIn(root, "add", "--all")
      gitIn(root, "commit", "--quiet", "--message", "Ask for more programs")
      gitIn(root, "config", "extensions.worktreeConfig", "true")
      writeFileSync(join(root, ".git/config"), `[filter "a=b"]\n\tsmudge = ${program}\n\tclean = ${program}\n`, {
        flag: "a"
      })
      gitIn(root, "config", "--worktree", "filter.own.clean", program)
      gitIn(root, "config", "--worktree", "filter.own.smudge", program)
      rmSync(ran, { force: true })
      const quietly = () => assert.isFalse(existsSync(ran), existsSync(ran) ? readFileSync(ran, "utf8") : "")
      yield* trees.open({ job_name: dig, branch: "work" })
      quietly()
      // On both sides, so that a merge driver would be asked.
      const quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.bad.clean=cat"]
      for (const [folder, text] of [
        [root, "left\n"],
        [join(root, ".worktrees/dig"), "right\n"]
      ] as const) {
        writeFileSync(join(folder, "a.txt"), text)
        gitIn(folder, ...quiet, "commit", "--quiet", "--all", "--message", "Change a.txt")
      }
      // Git itself may have asked them for a file of the same second.
      rmSync(ran, { force: true })
      assert.lengthOf((yield* trees.look({ job_name: dig, branch: "work" }, []))?.conflicts ?? [], 1)
      yield* trees.close(dig)
      quietly()
    })
  )

  it.live("runs nothing that a repository within it configures, which counts as not committed", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      const ran = join(root, ".git/ran")
      const program = join(root, ".git/program")
      writeFileSync(program, `#!/bin/sh\necho "$0" >> ${ran}\n`)
      chmodSync(program, 0o755)
      yield* trees.open({ job_name: dig, branch: "work" })
      const tree = join(root, ".worktrees/dig")
      const nested = join(tree, "nested")
      mkdirSync(nested)
      gitIn(nested, "init", "--quiet", "--initial-branch=main")
      commitIn(nested, "b.txt", "first\n")
      gitIn(tree, "add", "--all")
      gitIn(tree, "commit", "--quiet", "--message", "Have a repository within")
      gitIn(nested, "config", "core.fsmonitor", program)
      gitIn(nested, "config", "filter.bad.clean", program)
      writeFileSync(join(nested, ".gitattributes"), "*.txt filter=bad\n")
      writeFileSync(join(nested, "b.txt"), "other\n")
      rmSync(ran, { force: true })
      assert.strictEqual((yield* trees.look({ job_name: dig, branch: "work" }, []))?.uncommitted, 1)
      yield* trees.close(dig)
      assert.isFalse(existsSync(ran), existsSync(ran) ? readFileSync(ran, "utf8") : "")
      assert.isTrue(existsSync(join(nested, "b.txt")))
    })
  )

  it.live("is made again whole where a kill cut off its checkout", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      gitIn(root, "config", "filter.slow.smudge", "sleep 60; cat")
      writeFileSync(join(root, ".gitattributes"), "*.txt filter=slow\n")
      gitIn(root, "-c", "filter.slow.clean=cat", "add", "--all")
      gitIn(root, "commit", "--quiet", "--message", "Be slow")
      mkdirSync(join(root, ".worktrees"))
      const folder = join(root, ".worktrees/dig")
      // Git itself, which waits for the filter in the middle of its checkout.
      const cut = yield* Effect.callback<ChildProcess>((resume) => {
        const child = spawn("git", ["worktree", "add", "-b", "work", folder, "HEAD"], {
          cwd: root,
          detached: true,
          stdio: "ignore"
        })
        const look = () => {
          if (existsSync(join(folder, ".gitattributes"))) resume(Effect.succeed(child))
        }
        const watcher = watch(root, { recursive: true }, look)
        look()
        return Effect.sync(() => watcher.close())
      })
      const gone = Effect.callback<void>((resume) => void cut.once("exit", () => resume(Effect.void)))
      process.kill(-(cut.pid ?? 0), "SIGKILL")
      yield* gone
      assert.isFalse(existsSync(join(folder, "a.txt")))
      yield* trees.open({ job_name: dig, branch: "work" })
      assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "first\n")
      yield* trees.close(dig)
      assert.isFalse(existsSync(folder))
    })
  )

  it.live("tells in which files its branch does not fit with the workspace and with other jobs", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      const [mine, other] = [
        { job_name: dig, branch: "dig" },
        { job_name: rake, branch: "rake" }
      ]
      yield* trees.open(mine)
      yield* trees.open(other)
      commitIn(join(root, ".worktrees/dig"), "a.txt", "dug\n")
      commitIn(join(root, ".worktrees/rake"), "a.txt", "raked\n")
      assert.deepInclude(yield* trees.look(mine, [other]), { conflicts: [{ with: "rake", paths: ["a.txt"] }] })
      commitIn(root, "a.txt", "changed meanwhile\n")
      const found = yield* trees.look(mine, [other])
      assert.deepStrictEqual(
        found?.conflicts.map((each) => each.with),
        ["the workspace", "rake"]
      )
    })
  )

  it.live("is removed by a sweep unless its job runs", () =>
    Effect.gen(function* () {
      const { root, trees } = yield* inRepository
      yield* trees.open({ job_name: dig, branch: "dig" })
      yield* trees.open({ job_name: rake, branch: "rake" })
      yield* trees.sweep(new Set(["rake"]))
      assert.isFalse(existsSync(join(root, ".worktrees/dig")))
      assert.isTrue(existsSync(join(root, ".worktrees/rake")))
    })
  )
})
