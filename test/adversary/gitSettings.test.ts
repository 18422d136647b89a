/**
 * A repository that has git run programs, by each of git's settings that can, and every git that an agent or choird starts by itself on it.
 * Each program of the repository writes its own name; no name may be written.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { JobName } from "#schema/Ids.ts"
import { layerWorktrees, Worktrees } from "#src/agent/git/Worktrees.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork } from "#src/choird/repos/GitWork.ts"
import { runGit } from "#src/shared/git/git.ts"
import { temporaryFolder } from "../support/engines.ts"
import { makeGitRepo } from "../support/gitRepo.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { temporaryWorkspace, toolServices } from "../support/workspace.ts"

const leftOut = ensureDebianPackages(["git"], "git's settings")

/** Settings of a repository that name a program, by what calls it. `RUN` is a program that writes `name`. */
const SETTINGS: Readonly<Record<string, string>> = {
  "core.sshCommand": "[core]\n\tsshCommand = RUN",
  "core.fsmonitor": "[core]\n\tfsmonitor = RUN",
  "core.pager": "[core]\n\tpager = RUN",
  "core.editor": "[core]\n\teditor = RUN",
  "core.askPass": "[core]\n\taskPass = RUN",
  "core.gitProxy": "[core]\n\tgitProxy = RUN",
  "core.alternateRefsCommand": "[core]\n\talternateRefsCommand = RUN",
  "sequence.editor": "[sequence]\n\teditor = RUN",
  "pager.log": "[pager]\n\tlog = RUN\n\tstatus = RUN\n\tdiff = RUN\n\tconfig = RUN",
  "diff.external": "[diff]\n\texternal = RUN",
  "diff.command": '[diff "bad"]\n\tcommand = RUN',
  "diff.textconv": '[diff "worse"]\n\ttextconv = RUN\n\tcachetextconv = true',
  "alias of a command": "[alias]\n\tstatus = !RUN\n\tworktree = !RUN\n\tlog = !RUN\n\trev-parse = !RUN\n\tnone = !RUN",
  "gpg.program":
    "[gpg]\n\tprogram = RUN\n[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[log]\n\tshowSignature = true",
  "gpg.ssh.program": '[gpg "ssh"]\n\tprogram = RUN\n\tdefaultKeyCommand = RUN',
  "filter.clean": '[filter "bad"]\n\tclean = RUN\n\tsmudge = RUN\n\trequired = true',
  "filter.process": '[filter "worse"]\n\tprocess = RUN\n\trequired = true',
  "filter with a sign": '[filter "a=b"]\n\tclean = RUN\n\tsmudge = RUN',
  "merge.driver": '[merge "bad"]\n\tdriver = RUN %A',
  "credential.helper": '[credential]\n\thelper = "!RUN"\n[credential "https://localhost"]\n\thelper = "!RUN"',
  "url.insteadOf":
    '[url "ext::RUN "]\n\tinsteadOf = /\n[protocol "ext"]\n\tallow = always\n[protocol]\n\tallow = always',
  "remote.vcs": '[remote "other"]\n\tvcs = bad\n\turl = /nowhere',
  "remote.receivepack": '[remote "back"]\n\turl = HERE\n\treceivepack = "RUN #"\n\tuploadpack = "RUN #"',
  "interactive.diffFilter": "[interactive]\n\tdiffFilter = RUN",
  "trailer.command": '[trailer "x"]\n\tcommand = RUN\n\tcmd = RUN\n\tifmissing = add',
  "submodule.update":
    '[submodule "sub"]\n\tupdate = !RUN\n\turl = HERE\n\tactive = true\n[submodule]\n\trecurse = true',
  "uploadpack.packObjectsHook": "[uploadpack]\n\tpackObjectsHook = RUN",
  "http.proxy": "[http]\n\tproxy = http://127.0.0.1:9\n[ssh]\n\tvariant = simple",
  "gc.recentObjectsHook": "[gc]\n\trecentObjectsHook = RUN\n\tauto = 1\n[maintenance]\n\tauto = true",
  "guitool and browser":
    '[guitool "x"]\n\tcmd = RUN\n[browser "x"]\n\tcmd = RUN\n[difftool "x"]\n\tcmd = RUN\n[mergetool "x"]\n\tcmd = RUN',
  "sendemail.tocmd": "[sendemail]\n\ttocmd = RUN\n\tsendmailCmd = RUN",
  "tar.command": '[tar "bad"]\n\tcommand = RUN',
  "hook.command":
    '[hook "bad"]\n\tcommand = RUN\n\tevent = post-checkout\n\tevent = reference-transaction\n\tevent = post-index-change',
  "man.cmd": '[man "x"]\n\tcmd = RUN'
}

/** What has to be alone in a configuration: it changes what a repository is, or has git refuse it. */
const ALONE: Readonly<Record<string, string>> = {
  "a promisor":
    '[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = HERE\n\tuploadpack = "RUN #"',
  "a promisor by ssh":
    '[core]\n\tsshCommand = RUN\n[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = ssh://localhost/x',
  "a promisor by a program": `[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = ext::RUN\n[protocol "ext"]\n\tallow = always`,
  "an included filter": "[include]\n\tpath = ../included",
  "a filter that a branch includes": '[includeIf "onbranch:job-branch"]\n\tpath = ../included',
  "a filter that a folder includes": '[includeIf "gitdir:**/worktrees/**"]\n\tpath = HERE/included',
  "a worktree elsewhere": "[core]\n\tworktree = HERE/elsewhere"
}

const HOOKS = [
  "post-checkout",
  "reference-transaction",
  "post-index-change",
  "pre-commit",
  "post-merge",
  "pre-push",
  "pre-receive",
  "update",
  "post-receive",
  "post-update",
  "push-to-checkout",
  "proc-receive",
  "pre-auto-gc",
  "fsmonitor-watchman"
]

const ATTRIBUTES = [
  "*.txt filter=bad diff=bad merge=bad",
  "*.md filter=worse diff=worse",
  "*.rst filter=a=b",
  "*.in filter=included"
].join("\n")
const MISSING = "1234567890123456789012345678901234567890"

/** Makes a repository hostile; answers the names of the programs that ran since. */
const poison = (root: string, settings: Readonly<Record<string, string>>) => {
  const programs = `${root}.programs`
  const ran = `${root}.ran`
  for (const folder of [programs, ran]) mkdirSync(folder, { recursive: true })
  const program = (name: string) => {
    const path = join(programs, name.replaceAll(/[^a-z]/giu, "-"))
    writeFileSync(path, `#!/bin/sh\n: > '${ran}/${name}'\ncat\n`)
    chmodSync(path, 0o755)
    return path
  }
  const texts = Object.entries(settings).map(([name, text]) =>
    text.replaceAll("RUN", program(name)).replaceAll("HERE", root)
  )
  writeFileSync(join(root, ".git/config"), `\n${texts.join("\n")}\n`, { flag: "a" })
  writeFileSync(
    join(root, "included"),
    `[filter "included"]\n\tclean = ${program("included")}\n\tsmudge = ${program("included")}\n`
  )
  mkdirSync(join(root, ".git/hooks"), { recursive: true })
  for (const hook of HOOKS) {
    writeFileSync(join(root, ".git/hooks", hook), `#!/bin/sh\n: > '${ran}/hook ${hook}'\n`)
    chmodSync(join(root, ".git/hooks", hook), 0o755)
  }
  mkdirSync(join(root, ".git/info"), { recursive: true })
  writeFileSync(join(root, ".git/info/attributes"), `${ATTRIBUTES}\n`)
  writeFileSync(join(root, ".git/refs/heads/gone"), `${MISSING}\n`)
  const names = () => readdirSync(ran).sort()
  const forget = () => {
    rmSync(ran, { recursive: true })
    mkdirSync(ran)
  }
  return { names, forget, forgetAll: () => [programs, ran].forEach((path) => rmSync(path, { recursive: true })) }
}

const FILES = {
  "a.txt": "a\n",
  "a.md": "b\n",
  "a.rst": "c\n",
  "a.in": "d\n",
  ".gitattributes": `${ATTRIBUTES}\n`,
  included: "\n"
}

const job = { job_name: JobName.make("dig"), branch: "job-branch" }
const other = { job_name: JobName.make("rake"), branch: "gone" }

/** An agent's workspace with that repository, and everything that its worktrees do. */
const agentGit = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>>) {
  const { root } = yield* temporaryWorkspace
  const repo = makeGitRepo(root)
  repo.commit(FILES)
  repo.git(["reset", "--quiet", "--hard"])
  const poisoned = poison(root, settings)
  yield* Effect.addFinalizer(() => Effect.sync(poisoned.forgetAll))
  const context = yield* Layer.build(Layer.provide(layerWorktrees, Layer.succeedContext(yield* toolServices(root))))
  const trees = yield* Effect.provide(Worktrees, context)
  const tree = join(root, ".worktrees/dig")
  const quietly = <A, E>(effect: Effect.Effect<A, E>) => Effect.option(effect)
  yield* quietly(trees.check(job))
  yield* quietly(trees.open(job))
  const opened = existsSync(join(tree, "a.txt"))
  for (const path of [root, tree].filter((path) => existsSync(path))) writeFileSync(join(path, "a.txt"), "changed\n")
  yield* quietly(trees.look(job, [other]))
  yield* quietly(trees.check(other))
  yield* quietly(trees.open(other))
  yield* quietly(trees.look(other, [job]))
  yield* quietly(trees.close(job.job_name))
  yield* quietly(trees.sweep(new Set()))
  return { ...poisoned, root, opened }
})

/** Git as a person starts it, which runs what the repository says. */
const plainGit = (root: string) => {
  const env = { PATH: process.env["PATH"] ?? "", GIT_CONFIG_GLOBAL: "/dev/null", HOME: "/nonexistent" }
  const git = (...args: ReadonlyArray<string>) =>
    spawnSync("git", args, { cwd: root, env, timeout: 20_000, stdio: "ignore" })
  git("status")
  git("checkout", "--force", "-b", "control")
  git("diff")
  git("log", "--patch", "-1")
  git("none")
  git("worktree", "add", `${root}.control`, "-b", "job-branch-2")
  git("rev-parse", `${MISSING}^{commit}`)
  git("fetch", "back")
  git("commit", "--all", "--message", "x")
  rmSync(`${root}.control`, { recursive: true, force: true })
}

describe.skipIf(leftOut !== undefined)("git in a repository of an agent that has it run programs", () => {
  it.live("starts none of them for a job's worktree, whatever the settings are", () =>
    Effect.gen(function* () {
      const { forget, names, opened, root } = yield* agentGit(SETTINGS)
      assert.deepStrictEqual(names(), [])
      assert.isTrue(opened)
      forget()
      plainGit(root)
      assert.includeMembers(names(), [
        "alias of a command",
        "core.fsmonitor",
        "filter.process",
        "hook reference-transaction",
        "url.insteadOf"
      ])
    })
  )

  for (const [name, text] of Object.entries(ALONE))
    it.live(`starts none for ${name}`, () =>
      Effect.gen(function* () {
        const { names } = yield* agentGit({ [name]: text })
        assert.deepStrictEqual(names(), [])
      })
    )

  it.live("is told by a promisor and by included configuration when a person starts it", () =>
    Effect.gen(function* () {
      for (const name of ["a promisor", "an included filter"]) {
        const { forget, names, root } = yield* agentGit({ [name]: ALONE[name] ?? "" })
        forget()
        writeFileSync(join(root, "a.in"), "changed\n")
        plainGit(root)
        assert.include(names(), name === "a promisor" ? name : "included")
      }
    })
  )

  it.live("refuses configuration that it cannot know whole", () =>
    Effect.gen(function* () {
      // Two long names around the one that counts: of a long output the middle is left out.
      const long = (name: string) => `[filter "${name.repeat(700_000)}"]\n\tclean = RUN`
      const { names, opened } = yield* agentGit({
        first: long("a"),
        bad: SETTINGS["filter.clean"] ?? "",
        last: long("b")
      })
      assert.deepStrictEqual(names(), [])
      assert.isFalse(opened)
    })
  )
})

describe.skipIf(leftOut !== undefined)("git of choird", () => {
  const layer = GitWork.layer.pipe(Layer.provideMerge(Git.layer), Layer.provideMerge(NodeServices.layer))

  /** Everything that choird does with a source, whose folder is hostile, in a repository of its own. */
  const choirdGit = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>>) {
    const folder = yield* temporaryFolder
    const url = join(folder, "source")
    mkdirSync(url)
    const repo = makeGitRepo(url)
    repo.commit(FILES)
    repo.git(["reset", "--quiet", "--hard"])
    const poisoned = poison(url, settings)
    const git = yield* Git
    const work = yield* GitWork
    const own = join(folder, "own.git")
    const source = { url, ref: "main", transport: "file" } as const
    yield* work.begin(own)
    const gone = { ...source, ref: "gone" }
    yield* Effect.option(Effect.flatMap(git.lookup(own, gone), (found) => git.fetch(own, gone, found)))
    let isRead = false
    yield* Effect.option(
      Effect.gen(function* () {
        const found = yield* git.lookup(own, source)
        yield* git.fetch(own, source, found)
        const commit = yield* work.branch(own, source)
        writeFileSync(join(url, "a.txt"), "changed\n")
        yield* git.uncommitted(own, source, commit)
        writeFileSync(join(url, "a.txt"), "a\n")
        yield* git.files(own, commit, "source")
        isRead = true
        yield* work.ahead(own, commit, commit)
        const bytes = Buffer.from("new\n")
        yield* work.commit(own, {
          parent: commit,
          files: [{ path: "new.bin", executable: false, bytes }],
          message: "Add a file",
          identity: { name: "Test", email: "test@localhost" },
          date: "2026-01-01T00:00:00Z"
        })
      })
    )
    return { ...poisoned, url, isRead }
  })

  it.live("runs none on a source on this host, from the first look to a commit", () =>
    Effect.gen(function* () {
      const { isRead, names } = yield* choirdGit(SETTINGS)
      assert.deepStrictEqual(names(), [])
      assert.isTrue(isRead)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  for (const [name, text] of Object.entries(ALONE))
    it.live(`runs none for ${name}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual((yield* choirdGit({ [name]: text })).names(), [])
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

  /** The commands that work on a repository of choird's own; were somebody to write there, they still run nothing. */
  const LOCAL: ReadonlyArray<ReadonlyArray<string>> = [
    ["rev-parse", "--verify", "HEAD^{commit}"],
    ["rev-parse", "--verify", `${MISSING}^{commit}`],
    ["cat-file", "-t", MISSING],
    ["ls-tree", "-r", "HEAD"],
    ["log", "--no-decorate", "--no-show-signature", "--format=%H", "HEAD", "--"],
    ["merge-base", "--is-ancestor", "HEAD", "HEAD"],
    ["read-tree", "HEAD"],
    ["ls-files", "-z"],
    ["write-tree"],
    ["update-ref", "refs/heads/x", "HEAD"],
    ["config", "core.bare"],
    ["bundle", "create", "-", "HEAD"]
  ]

  it.live("runs none by a repository's own configuration, whatever it is asked", () =>
    Effect.gen(function* () {
      for (const settings of [SETTINGS, ...Object.entries(ALONE).map(([name, text]) => ({ [name]: text }))]) {
        const folder = yield* temporaryFolder
        const root = join(folder, "repository")
        mkdirSync(root)
        const repo = makeGitRepo(root)
        repo.commit(FILES)
        const { names } = poison(root, settings)
        for (const args of LOCAL) yield* Effect.option(runGit({ gitDir: join(root, ".git"), args }))
        assert.deepStrictEqual(names(), [], Object.keys(settings).join(" "))
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it("has all its settings in one file", () => {
    const named = "hooksPath|fsmonitor|GIT_ALLOW_PROTOCOL|GIT_NO_LAZY_FETCH|GIT_CONFIG_NOSYSTEM"
    const files = execFileSync("grep", ["-rlE", named, "src"], { encoding: "utf8" })
    assert.strictEqual(files.trim(), "src/shared/git/safeGit.ts")
  })
})
