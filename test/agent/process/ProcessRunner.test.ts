import { execFileSync, spawnSync } from "node:child_process"
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, watch, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import type { Command } from "#src/agent/process/startCommand.ts"
import { leaveOut } from "../../support/packages.ts"
import { processesNaming } from "../../support/processes.ts"
import { callIdOf } from "../../support/workspace.ts"
import { EXEC_OUTPUT_BYTES_MAX } from "#src/agent/process/startCommand.ts"

const CALL = callIdOf("runner-1-1-0")

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-run-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const sh = Effect.fnUntraced(function* (script: string, more: Partial<Command> = {}, call_id = CALL) {
  const processes = yield* ProcessRunner
  return yield* processes.run(call_id, {
    command: "/bin/sh",
    args: ["-c", script],
    cwd: "/tmp",
    timeout_ms: 60_000,
    ...more
  })
})

const appears = (parent: string, name: string) =>
  Effect.callback<void>((resume) => {
    const watcher = watch(parent, () => {
      if (existsSync(join(parent, name))) resume(Effect.void)
    })
    if (existsSync(join(parent, name))) resume(Effect.void)
    return Effect.sync(() => watcher.close())
  })

/** Far less than any of the sleeps, and many times what a command takes on a quiet machine. */
const SOON_MS_MAX = 10_000

/** A duration that names the processes of one test. */
let durations = 0
const sleepDuration = () => `98765.${process.pid}${++durations}`

layer(ProcessRunner.layer({ ownsPidNamespace: false }), { excludeTestServices: true })("ProcessRunner", (it) => {
  describe("gives back", () => {
    it.effect("exit code, output and duration", () =>
      Effect.gen(function* () {
        const { duration_ms, ...result } = yield* sh("echo out; echo err >&2; exit 3")
        assert.deepStrictEqual(result, {
          exit_code: 3,
          stdout: { text: "out\n", dropped: 0 },
          stderr: { text: "err\n", dropped: 0 },
          timed_out: false,
          survivors: 0
        })
        assert.isBelow(duration_ms, SOON_MS_MAX)
      })
    )

    it.effect("the signal that ended the command", () =>
      Effect.gen(function* () {
        const { exit_code, signal } = yield* sh("kill -USR1 $$")
        assert.deepStrictEqual([exit_code, signal], [undefined, "SIGUSR1"])
      })
    )

    it.effect("R48 head and tail of an endless output, and how much is missing", () =>
      Effect.gen(function* () {
        const { stdout } = yield* sh("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
        assert.isTrue(stdout.text.startsWith("first\n") && stdout.text.endsWith("\nlast\n"))
        assert.strictEqual(stdout.dropped, 3_000_012 - EXEC_OUTPUT_BYTES_MAX)
        assert.include(stdout.text, `\n[${stdout.dropped} bytes left out]\n`)
      })
    )

    it.effect("all output of a large burst right before the exit", () =>
      Effect.gen(function* () {
        const { stdout } = yield* sh("head -c 900000 /dev/zero | tr '\\0' y")
        assert.strictEqual(stdout.text, "y".repeat(900_000))
      })
    )

    it.effect("a typed error for a command that is not there or cannot be given to the kernel", () =>
      Effect.gen(function* () {
        const missing = yield* Effect.flip(sh("", { command: "/does/not/exist" }))
        assert.deepInclude(missing, { _tag: "CommandNotStarted", code: "ENOENT" })
        const nul = yield* Effect.flip(sh("echo \0"))
        assert.deepInclude(nul, { _tag: "CommandNotStarted", code: "ERR_INVALID_ARG_VALUE" })
      })
    )
  })

  describe("hands over", () => {
    it.effect("no more of the environment than six names, of which the agent's time zone is one", () =>
      Effect.gen(function* () {
        const before = process.env["TZ"]
        process.env["TZ"] = "Asia/Tokyo"
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            if (before === undefined) delete process.env["TZ"]
            else process.env["TZ"] = before
          })
        )
        const { stdout } = yield* sh("", { command: "/usr/bin/env", args: [] })
        const told = stdout.text.trim().split("\n")
        assert.deepStrictEqual(told.map((line) => line.replace(/(?<=^CHOIR_CALL_MARKER=).+/u, "drawn")).sort(), [
          `CHOIR_CALL_ID=${CALL}`,
          "CHOIR_CALL_MARKER=drawn",
          "HOME=/tmp",
          "LANG=C.UTF-8",
          "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          "TERM=dumb",
          "TZ=Asia/Tokyo"
        ])
      })
    )

    it.effect("the input, or none at all", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* sh("cat", { stdin: "some input" })).stdout.text, "some input")
        assert.strictEqual((yield* sh("cat")).stdout.text, "")
      })
    )

    it.effect("an input that nobody reads", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* sh("exec 0<&-", { stdin: "x".repeat(1_000_000) })).exit_code, 0)
      })
    )

    it.effect("secrets on a descriptor, and in no place that another process could read (R32)", () =>
      Effect.gen(function* () {
        const secrets = Redacted.make(`{"a":"canary-0123456789"}`)
        const script =
          'cat <&"$CHOIR_SECRETS_FD"; cat /proc/$$/environ /proc/$$/cmdline | tr "\\0" "\\n"; ls -l /proc/$$/fd/3; cat /proc/$$/fd/3'
        const { stdout } = yield* sh(script, { secrets, stdin: "input" })
        const [document, ...rest] = stdout.text.split(/(?<=\})/u)
        assert.strictEqual(document, Redacted.value(secrets))
        assert.notInclude(rest.join(""), "canary")
        assert.include(rest.join(""), "CHOIR_SECRETS_FD=3\n")
        assert.include(rest.join(""), "socket:")
      })
    )

    it.effect("secrets with no home folder, where anything may have left a configuration", () =>
      Effect.gen(function* () {
        const { stdout } = yield* sh('ls "$HOME" 2>&1; echo "$HOME"', { secrets: Redacted.make("{}") })
        assert.match(stdout.text, /No such file.*\n\/nonexistent\n$/su)
      })
    )

    it.effect("secrets that nobody reads, and a mebibyte of them to one that does", () =>
      Effect.gen(function* () {
        const secrets = Redacted.make("x".repeat(1024 * 1024))
        const scripts = ["true", "exec 3<&-", "echo spam >&3", "head -c 10 <&3"]
        for (const script of scripts) assert.strictEqual((yield* sh(script, { secrets })).exit_code, 0, script)
        assert.strictEqual((yield* sh("wc -c <&3", { secrets })).stdout.text.trim(), String(1024 * 1024))
      })
    )

    it.effect("no descriptor 3 to who gets no secrets", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* sh("test ! -e /proc/$$/fd/3")).exit_code, 0)
      })
    )

    it.effect("no file that the agent has open", () =>
      Effect.gen(function* () {
        const path = join(yield* folder, "open-in-the-agent")
        yield* Effect.acquireRelease(
          Effect.sync(() => openSync(path, "w")),
          (file) => Effect.sync(() => closeSync(file))
        )
        assert.notInclude((yield* sh("ls -l /proc/$$/fd")).stdout.text, path)
      })
    )
  })

  describe("R22 leaves behind no process that", () => {
    const escapes: Readonly<Record<string, (sleep: string) => string>> = {
      "runs in the background and holds the output open": (sleep) => `${sleep} & echo started`,
      "has a session of its own": (sleep) => `setsid ${sleep} & echo started`,
      "forked twice": (sleep) => `(setsid sh -c '${sleep} & ${sleep} &' &) ; echo started`,
      "ignores hang-ups": (sleep) => `nohup ${sleep} >/dev/null 2>&1 & echo started`,
      "ignores what can be ignored": (sleep) => `(trap '' TERM INT HUP; ${sleep}; ${sleep}) & echo started`,
      "wiped its environment but kept its session": (sleep) => `env -i ${sleep} & echo started`,
      "was stopped": (sleep) => `${sleep} & kill -STOP $!; echo started`
    }
    for (const [name, script] of Object.entries(escapes)) {
      it.effect(name, () =>
        Effect.gen(function* () {
          const duration = sleepDuration()
          const { duration_ms, stdout, survivors } = yield* sh(script(`sleep ${duration}`))
          assert.deepStrictEqual([stdout.text, survivors, processesNaming(duration)], ["started\n", 0, []])
          assert.isBelow(duration_ms, SOON_MS_MAX)
        })
      )
    }

    it.effect("ran into its timeout", () =>
      Effect.gen(function* () {
        const duration = sleepDuration()
        const script = `trap '' TERM; echo before; setsid sleep ${duration} & sleep ${duration}`
        const { signal, timed_out, duration_ms, stdout } = yield* sh(script, { timeout_ms: 1000 })
        assert.deepStrictEqual([signal, timed_out, stdout.text], ["SIGKILL", true, "before\n"])
        assert.isBelow(duration_ms, SOON_MS_MAX)
        assert.deepStrictEqual(processesNaming(duration), [])
      })
    )

    it.effect("was interrupted", () =>
      Effect.gen(function* () {
        const duration = sleepDuration()
        const cwd = yield* folder
        const fiber = yield* sh(`setsid sleep ${duration} & touch ready; wait`, { cwd }).pipe(Effect.forkChild)
        yield* appears(cwd, "ready")
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(processesNaming(duration), [])
      })
    )

    it.effect("forks without end", () =>
      Effect.gen(function* () {
        const duration = sleepDuration()
        const script = `f() { i=0; while [ $i -lt 40 ]; do sleep ${duration} & i=$((i+1)); done; }; f & f & f & echo started`
        const { survivors } = yield* sh(script)
        assert.deepStrictEqual([survivors, processesNaming(duration)], [0, []])
      })
    )
  })

  it.effect("kills nothing of a call that is still in flight", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      execFileSync("mkfifo", [join(cwd, "fifo")])
      const script = "(cat fifo > copy; touch done) & touch ready; wait; cat copy"
      const long = yield* sh(script, { cwd }, callIdOf("runner-1-1-1")).pipe(Effect.forkChild)
      yield* appears(cwd, "ready")
      yield* Effect.forEach([1, 2, 3], () => sh("true"), { concurrency: "unbounded" })
      writeFileSync(join(cwd, "fifo"), "still here")
      const { exit_code, stdout } = yield* Fiber.join(long)
      assert.deepStrictEqual([exit_code, stdout.text], [0, "still here"])
    })
  )
})

const NAMESPACE = ["--pid", "--fork", "--mount-proc", "--kill-child"]
const CLEAN = { stdout: "started\n", survivors: 0, left: 0, slow: false }
const OWN_NAMESPACE = "ProcessRunner in a pid namespace of its own"
const reason =
  spawnSync("unshare", [...NAMESPACE, "true"]).status === 0
    ? undefined
    : leaveOut(OWN_NAMESPACE, "unshare --pid needs root")

describe.skipIf(reason !== undefined)(OWN_NAMESPACE, () => {
  const script = join(import.meta.dirname, "../../support/pidNamespaceAgent.ts")
  const start: Readonly<Record<string, ReadonlyArray<string>>> = {
    "the agent as init": [process.execPath, script],
    "an init of its own": ["/bin/sh", "-c", `"$0" "$1"; exit $?`, process.execPath, script]
  }
  for (const [name, argv] of Object.entries(start)) {
    it(`R22 leaves nothing behind of a daemon that wiped every trace, with ${name}`, { timeout: 300_000 }, () => {
      const lines = execFileSync("unshare", [...NAMESPACE, ...argv], { encoding: "utf8" })
        .trim()
        .split("\n")
      assert.isAtLeast(lines.length, 5)
      for (const line of lines) {
        const { script, stdout, survivors, left, slow } = JSON.parse(line)
        assert.deepStrictEqual({ stdout, survivors, left, slow }, CLEAN, script)
      }
    })
  }
})
