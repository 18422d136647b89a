import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schedule } from "effect"
import { LIVE, makeHomeFolder } from "../support/choird.ts"
import { putDatabase, temporaryFolder } from "../support/engines.ts"
import { makeJournal } from "../support/testing/Journal.ts"
import { processesNaming } from "../support/processes.ts"

const PROGRAM = join(import.meta.dirname, "../../dist/choird.js")

/** The caller lets choird write core files, as far as this machine lets the caller. */
const WITH_CORES = 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"'

/** choird as an operator starts it; its lines on standard error, and the code it ends with. */
const begin = (
  home: string,
  env: Readonly<Record<string, string>> = { CHOIR_LOG: "stderr" },
  flags: ReadonlyArray<string> = []
) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const command = [process.execPath, PROGRAM, "--home", home, ...flags]
      const child = spawn("/bin/sh", ["-c", WITH_CORES, "sh", ...command], {
        env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], ...env },
        stdio: ["ignore", "ignore", "pipe"]
      })
      const lines = makeJournal<string>()
      createInterface(child.stderr).on("line", lines.record)
      const ended = Deferred.makeUnsafe<number | null>()
      child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)))
      const says = (pattern: RegExp) => lines.journal.first((line) => pattern.test(line))
      return {
        pid: child.pid ?? 0,
        signal: (name: NodeJS.Signals) => child.kill(name),
        lines: lines.journal,
        says,
        code: Deferred.await(ended)
      }
    }),
    ({ code, signal }) =>
      Effect.andThen(
        Effect.sync(() => signal("SIGKILL")),
        code
      )
  )

/** A home that choird has run in. */
const makeUsedHome = Effect.tap(makeHomeFolder(), ({ home }) => putDatabase(home))

/** Asks the operator API as choirctl does. */
const ask = (home: string, method: string, path: string, body?: unknown) =>
  Effect.callback<Record<string, unknown>, Error>((resume) => {
    const headers = body === undefined ? {} : { "content-type": "application/json" }
    request({ socketPath: join(home, "socks", "choird.sock"), method, path, headers }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      // A choird that ends cuts its answers.
      const parsed = Effect.orElseSucceed(
        Effect.try(() => JSON.parse(Buffer.concat(chunks).toString())),
        () => ({})
      )
      response.on("close", () => resume(parsed))
    })
      .on("error", (error) => resume(Effect.fail(error)))
      .end(body === undefined ? undefined : JSON.stringify(body))
  })

const agentOf = (home: string, id: string) => ask(home, "GET", `/agents/${id}`)

const untilRunning = (home: string, id: string) =>
  Effect.repeat(agentOf(home, id), {
    until: ({ status }) => status === "running",
    schedule: Schedule.spaced("20 millis")
  })

describe("choird", LIVE, () => {
  it.live("makes what a home lacks, goes through its ten steps, keeps others out, and stops on SIGTERM", () =>
    Effect.gen(function* () {
      const { agent_id, home } = yield* makeHomeFolder()
      const choird = yield* begin(home)
      yield* choird.says(/10\/10 choird ready in \d+ ms: config version 1, 1 agents/u)
      const steps = (yield* choird.lines.all).flatMap((line) => / (\d+)\/10 /u.exec(line)?.[1] ?? [])
      const timed = (yield* choird.lines.all).filter((line) => / \d\/10 .* in \d+ ms$/u.test(line.trimEnd()))
      assert.strictEqual(timed.length, 9, "each step but the last says what was done, and how long that took")
      assert.deepStrictEqual(steps, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])
      for (const folder of ["socks", "repos", "logs/archive", "data", "images"])
        assert.strictEqual(statSync(join(home, folder)).mode & 0o077, folder === "images" ? 0o055 : 0, folder)
      assert.deepInclude(yield* ask(home, "GET", "/status"), {
        agents: [
          { agent_id, status: "stopped", session_id: null, image_version: null, uptime_ms: 0, config_version: 0 }
        ]
      })
      const second = yield* begin(home)
      assert.strictEqual(yield* second.code, 75)
      assert.match(
        (yield* second.lines.all).join("\n"),
        new RegExp(`another choird runs in .*\\(pid ${choird.pid}\\)`, "u")
      )
      choird.signal("SIGTERM")
      assert.strictEqual(yield* choird.code, 0)
      assert.isFalse(existsSync(join(home, "socks", "choird.sock")))
      const log = join(home, "logs", "choird.log")
      assert.strictEqual(statSync(log).mode & 0o777, 0o600)
      const lines = readFileSync(log, "utf8").trim().split("\n")
      for (const line of lines) assert.containsAllKeys(JSON.parse(line), ["timestamp", "level", "source", "message"])
    })
  )

  it.live("writes no core file, whatever its caller's limit is: one would hold every secret", () =>
    Effect.gen(function* () {
      const { home } = yield* makeUsedHome
      const choird = yield* begin(home)
      yield* choird.says(/ 2\/10 /u)
      assert.match(readFileSync(`/proc/${choird.pid}/limits`, "utf8"), /^Max core file size +0 +0 /mu)
    })
  )

  it.live("resumes after kill -9 what was active, in the next epoch, with the first agent gone (R2, R8)", () =>
    Effect.gen(function* () {
      const { agent_id, home, workspace } = yield* makeUsedHome
      const first = yield* begin(home)
      yield* first.says(/choird ready/u)
      const { session_id } = yield* ask(home, "POST", `/agents/${agent_id}/start`, {})
      assert.isString(session_id)
      const [old] = processesNaming(`--workspace=${workspace}`)
      assert.isDefined(old)
      first.signal("SIGKILL")
      yield* first.code
      const second = yield* begin(home, {})
      yield* Effect.retry(untilRunning(home, agent_id), { schedule: Schedule.spaced("20 millis") })
      assert.deepInclude(yield* agentOf(home, agent_id), { status: "running", session_id })
      const agents = processesNaming(`--workspace=${workspace}`)
      assert.strictEqual(agents.length, 1)
      assert.notInclude(agents, old)
      assert.deepStrictEqual(yield* second.lines.all, [])
      assert.deepStrictEqual(yield* ask(home, "POST", "/shutdown"), { ok: true })
      assert.strictEqual(yield* second.code, 0)
      assert.deepStrictEqual(processesNaming(`--workspace=${workspace}`), [])
    })
  )

  it.live("ends on SIGTERM while it starts and while an agent does, and at once on a second signal", () =>
    Effect.gen(function* () {
      const { agent_id, home, workspace } = yield* makeUsedHome
      const early = yield* begin(home)
      yield* early.says(/ 2\/10 /u)
      early.signal("SIGTERM")
      assert.strictEqual(yield* early.code, 0)
      const second = yield* begin(home)
      yield* second.says(/choird ready/u)
      yield* Effect.forkChild(Effect.ignore(ask(home, "POST", `/agents/${agent_id}/start`, {})))
      yield* Effect.repeat(agentOf(home, agent_id), {
        until: ({ status }) => status !== "stopped",
        schedule: Schedule.spaced("5 millis")
      })
      second.signal("SIGTERM")
      assert.strictEqual(yield* second.code, 0)
      assert.deepStrictEqual(processesNaming(`--workspace=${workspace}`), [])
      const third = yield* begin(home)
      yield* third.says(/choird ready/u)
      third.signal("SIGTERM")
      third.signal("SIGINT")
      assert.strictEqual(yield* third.code, 130)
    })
  )

  it.live("ends with 78, one message and no stack when the configuration is wrong (R59)", () =>
    Effect.gen(function* () {
      const { home, write } = yield* makeHomeFolder()
      write("config.json", { agents: 5, surprise: true })
      const broken = yield* begin(home, {})
      assert.strictEqual(yield* broken.code, 78)
      const why = (yield* broken.lines.all).join("\n")
      for (const part of [
        "config.json cannot be used",
        "global_repo (line 1): is missing",
        "surprise (line 1): an unknown key",
        "choirctl config validate"
      ])
        assert.include(why, part)
      assert.notMatch(why, /^\s+at .*:\d+:\d+/mu)
      const nowhere = yield* begin(join(home, "nowhere"), {})
      assert.strictEqual(yield* nowhere.code, 78)
      assert.match(
        (yield* nowhere.lines.all).join("\n"),
        /does not exist\nTo fix it: choirctl --home \S+ init makes it/u
      )
      assert.isFalse(existsSync(join(home, "nowhere")))
    })
  )

  it.live("starts with the configuration that worked last, which a broken one names (R59)", () =>
    Effect.gen(function* () {
      const { agent_id, home, write } = yield* makeUsedHome
      const good = yield* begin(home)
      yield* good.says(/choird ready/u)
      const before = yield* ask(home, "GET", "/config")
      good.signal("SIGTERM")
      assert.strictEqual(yield* good.code, 0)
      assert.strictEqual(statSync(join(home, "config.last-good.json")).mode & 0o777, 0o600)
      write("config.json", { agents: 5 })
      const broken = yield* begin(home, {})
      assert.strictEqual(yield* broken.code, 78)
      const why = (yield* broken.lines.all).join("\n")
      assert.match(why, /agents \(line 1\): must be an object[^]*choird --home \S+ --last-good/u)
      const again = yield* begin(home, { CHOIR_LOG: "stderr" }, ["--last-good"])
      yield* again.says(/has read config\.last-good\.json/u)
      yield* again.says(/choird ready in \d+ ms: config version 1/u)
      assert.deepStrictEqual(yield* ask(home, "GET", "/config"), before)
      assert.deepInclude(yield* agentOf(home, agent_id), { agent_id })
    })
  )

  it.live("asks to try again with 75 when the embedded database cannot be opened, and says what helps", () =>
    Effect.gen(function* () {
      const { home } = yield* makeHomeFolder()
      mkdirSync(join(home, "data"), { mode: 0o700 })
      writeFileSync(join(home, "data", "something"), "else")
      const choird = yield* begin(home)
      assert.strictEqual(yield* choird.code, 75)
      assert.match(
        (yield* choird.lines.all).join("\n"),
        /embedded database in .* cannot be opened.*choirctl db restore/u
      )
    })
  )

  it.live("says what keeps a backup from being written, as on a full disk, and nothing of its stack (R70)", () =>
    Effect.gen(function* () {
      const { home } = yield* makeUsedHome
      const script = 'exec "$0" "$1" --home "$2" backup > /dev/full'
      const child = spawn("sh", ["-c", script, process.execPath, PROGRAM, home], {
        stdio: ["ignore", "ignore", "pipe"]
      })
      const lines = makeJournal<string>()
      createInterface(child.stderr).on("line", lines.record)
      const code = yield* Effect.callback<number | null>((resume) => {
        child.once("close", (code) => resume(Effect.succeed(code)))
      })
      const [report, ...others] = (yield* lines.journal.all).map((line): unknown => JSON.parse(line))
      assert.deepStrictEqual([code, others], [1, []])
      assert.nestedPropertyVal(report, "error.type", "OutputRefused")
      assert.match(JSON.stringify(report), /the backup cannot be written: ENOSPC.* Free some space/u)
    })
  )

  it.live("tells how it is used", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const child = spawn(process.execPath, [PROGRAM, "--hom", folder], { stdio: ["ignore", "ignore", "pipe"] })
      const lines = makeJournal<string>()
      createInterface(child.stderr).on("line", lines.record)
      const code = yield* Effect.callback<number | null>((resume) => {
        child.once("close", (code) => resume(Effect.succeed(code)))
      })
      assert.strictEqual(code, 2)
      assert.match((yield* lines.journal.all).join("\n"), /^there is no option --hom\n.*choird \[--home FOLDER\]/su)
    })
  )
})
