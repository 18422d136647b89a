import { randomBytes } from "node:crypto"
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { GIT_TIMEOUT_MS, runGit } from "#src/shared/git/git.ts"
import { makeGitRepo, temporaryFolder } from "../../support/gitRepo.ts"

/** Runs with these variables in the environment of the process, as an operator would set them. */
const withEnvironment = (variables: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
      Object.assign(process.env, variables)
      return before
    }),
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of before) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

/** A program called git, first in the PATH. */
const fakeGit = Effect.fnUntraced(function* (script: string) {
  const folder = yield* temporaryFolder
  writeFileSync(join(folder, "git"), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, "git"), 0o755)
  yield* withEnvironment({ PATH: `${folder}:${process.env["PATH"] ?? ""}` })
  return folder
})

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8")

describe("runGit", () => {
  it.effect("says that git is missing", () =>
    Effect.gen(function* () {
      yield* withEnvironment({ PATH: "/nonexistent" })
      assert.strictEqual((yield* Effect.flip(runGit({ args: ["version"] })))._tag, "GitMissing")
      const far = yield* Effect.flip(runGit({ args: ["fetch"], transport: "https" }))
      assert.strictEqual(far._tag, "GitMissing")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("gives git nothing of the environment but what it needs", () =>
    Effect.gen(function* () {
      const folder = yield* fakeGit("env")
      yield* withEnvironment({ SECRET: "s", GIT_DIR: folder, GIT_SSH: "s", HOME: folder, GIT_EXTERNAL_DIFF: "s" })
      const names = text(yield* runGit({ args: ["version"] }))
        .split("\n")
        .map((line) => line.split("=")[0])
      const known =
        /^(PATH|PWD|_|SHLVL|OLDPWD|LC_ALL|SSH_AUTH_SOCK|SSL_CERT_\w+|https?_proxy|HTTPS_PROXY|no_proxy|NO_PROXY|GIT_\w+|)$/u
      assert.deepStrictEqual(
        names.filter((name) => !known.test(name ?? "")),
        []
      )
      assert.deepStrictEqual(
        names.filter((name) => /^GIT_(DIR|SSH|EXTERNAL_DIFF)$/u.test(name ?? "")),
        []
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("obeys no configuration of the user", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { path } = makeGitRepo(join(folder, "repo"))
      writeFileSync(join(folder, ".gitconfig"), `[url "/nonexistent"]\n\tinsteadOf = ${path}\n`)
      yield* withEnvironment({
        HOME: folder,
        XDG_CONFIG_HOME: folder,
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "core.bare",
        GIT_CONFIG_VALUE_0: "true"
      })
      assert.strictEqual(text(yield* runGit({ gitDir: `${path}/.git`, args: ["config", "core.bare"] })), "false\n")
      yield* runGit({ args: ["ls-remote", path], transport: "file" })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("allows one transport a call, and none by itself", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { path } = makeGitRepo(join(folder, "repo"))
      const marker = join(folder, "pwned")
      for (const transport of [undefined, "https", "ssh"] as const) {
        const error = yield* Effect.flip(runGit({ args: ["ls-remote", path], ...(transport && { transport }) }))
        assert.match(error.message, /transport 'file' not allowed/u)
      }
      const error = yield* Effect.flip(runGit({ args: ["ls-remote", `ext::touch ${marker}`], transport: "file" }))
      assert.match(error.message, /transport 'ext' not allowed/u)
      assert.isFalse(existsSync(marker))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("ends a git that does not end, and what it started (D42)", () =>
    Effect.gen(function* () {
      const folder = yield* fakeGit(
        `trap '' TERM; sleep 1000 & echo "$$ $!" > "$(dirname "$0")/new" && mv "$(dirname "$0")/new" "$(dirname "$0")/pids"; wait`
      )
      const git = yield* Effect.forkChild(Effect.flip(runGit({ args: ["fetch"] })), { startImmediately: true })
      const pids = yield* Effect.try(() => readFileSync(join(folder, "pids"), "utf8")).pipe(
        Effect.retry(Schedule.spaced("5 millis")),
        TestClock.withLive
      )
      yield* TestClock.adjust(GIT_TIMEOUT_MS)
      const error = yield* Fiber.join(git)
      assert.strictEqual(error._tag === "GitFailed" && error.kind, "timeout")
      for (const pid of pids.trim().split(" ")) assert.notMatch(stateOf(pid), /[RSD]/u)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("stops reading an answer that is too long", () =>
    Effect.gen(function* () {
      yield* fakeGit("yes")
      const error = yield* Effect.flip(runGit({ args: ["ls-tree"], outputBytesMax: 1000 }))
      assert.strictEqual(error._tag === "GitFailed" && error.kind, "output")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("writes no more of what another side sends than it may, in however many objects that comes", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const repo = makeGitRepo(join(folder, "repo"))
      const parts = Array.from({ length: 8 }, (_, index) => [`part-${index}`, randomBytes(50_000)] as const)
      repo.commit(Object.fromEntries(parts))
      const place = join(folder, "clone")
      yield* runGit({ args: ["init", "--quiet", "--bare", "--template=", place] })
      const fetch = (writtenBytesMax: number) =>
        runGit({
          gitDir: place,
          transport: "file",
          writtenBytesMax,
          args: ["fetch", "--quiet", "--depth=1", "--no-tags", "--", repo.path, "+refs/heads/main:refs/x"]
        })
      assert.strictEqual((yield* Effect.flip(fetch(100_000)))._tag, "GitFailed")
      const sizes = readdirSync(place, { recursive: true }).map((name) => statSync(join(place, String(name))).size)
      assert.isAtMost(
        sizes.reduce((sum, size) => sum + size, 0),
        200_000
      )
      yield* fetch(1_000_000)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("answers git's question about one host of https, and is in no argument or environment", () =>
    Effect.gen(function* () {
      const password = Redacted.make("canary of git")
      const credential = { type: "password", host: "git.example.org:8443", user: "agent", password } as const
      const ask = (protocol: string, host: string) =>
        Effect.map(
          runGit({
            args: ["credential", "fill"],
            credential,
            stdin: Buffer.from(`protocol=${protocol}\nhost=${host}\n\n`)
          }),
          text
        )
      assert.include(yield* ask("https", "git.example.org:8443"), "username=agent\npassword=canary of git\n")
      for (const [protocol, host] of [
        ["https", "example.org"],
        ["https", "git.example.org"],
        ["https", "evil.git.example.org:8443"],
        ["http", "git.example.org:8443"]
      ] as const)
        assert.notInclude(JSON.stringify(yield* Effect.result(ask(protocol, host))), "canary")
      const six = { ...credential, host: "[::1]:8443" }
      const literal = (host: string) =>
        runGit({
          args: ["credential", "fill"],
          credential: six,
          stdin: Buffer.from(`protocol=https\nhost=${host}\n\n`)
        })
      assert.include(text(yield* literal("[::1]:8443")), "password=canary of git\n")
      assert.notInclude(JSON.stringify(yield* Effect.result(literal("1:8443"))), "canary")
      yield* fakeGit(`cat /proc/$$/environ /proc/$$/cmdline | tr '\\0' ' '`)
      assert.notInclude(text(yield* runGit({ args: ["push"], credential })), "canary")
      const key = { type: "key", key: Redacted.make("canary of ssh") } as const
      const started = text(yield* runGit({ args: ["push"], credential: key }))
      assert.include(started, "ssh-agent")
      assert.notInclude(started, "canary")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("repeats of an error's text one short line, without credentials and control characters", () =>
    Effect.gen(function* () {
      yield* fakeGit(`yes noise | head -c 300000 >&2; exit 7`)
      const long = yield* Effect.flip(runGit({ args: ["fetch"] }))
      assert.isBelow(long.message.length, 500)
      yield* fakeGit(`printf 'hint: x\\nfatal: cannot read https://me:secret@host/x \\033[2J\\n' >&2; exit 128`)
      const error = yield* Effect.flip(runGit({ args: ["fetch"] }))
      assert.strictEqual(error.message, "git fetch failed: fatal: cannot read https://host/x [2J")
      assert.strictEqual(error._tag === "GitFailed" && error.exit_code, 128)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

/** The state letter of a process, empty when it is gone. */
const stateOf = (pid: string) =>
  existsSync(`/proc/${pid}/stat`) ? (readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] ?? "") : ""
