import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeHomeFolder } from "../../support/choird.ts"
import { choirctl, document, spawnChoirctl } from "../../support/choirctl.ts"
import { processesNaming } from "../../support/processes.ts"
import { putDatabase, temporaryFolder } from "../../support/engines.ts"

/** A home whose choird, if any is left, ends with the test. */
const home = Effect.fnUntraced(function* (also?: Parameters<typeof makeHomeFolder>[0]) {
  const made = yield* makeHomeFolder(also)
  yield* putDatabase(made.home)
  yield* Effect.addFinalizer(() => Effect.ignore(choirctl(made.home, ["daemon", "stop"])))
  return made
})

describe("choirctl daemon", () => {
  it.live("starts choird in the background, says how it does, and stops it with its agents' sessions active", () =>
    Effect.gen(function* () {
      const { agent_id, home: folder, workspace } = yield* home()
      const before = yield* choirctl(folder, ["daemon", "status", "--json"])
      assert.strictEqual(before.code, 69)
      assert.deepInclude(document(before) as object, { running: false, ready: false, pid: null })
      const started = yield* choirctl(folder, ["daemon", "start", "--json"])
      assert.strictEqual(started.code, 0, started.out + started.err)
      const { pid } = document(started) as { pid: number }
      assert.deepInclude(document(started) as object, { ok: true, started: true, ready: true, version: "0.1.0" })
      assert.strictEqual(statSync(join(folder, "logs", "choird.err")).mode & 0o777, 0o600)
      // A session of its own: no terminal that closes ends it.
      const [, session] = /^\d+ \(.*\) \S \d+ \d+ (\d+)/u.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? []
      assert.strictEqual(Number(session), pid)
      // A core would hold every secret.
      assert.match(readFileSync(`/proc/${pid}/limits`, "utf8"), /^Max core file size +0 +0 /mu)
      const again = yield* choirctl(folder, ["daemon", "start", "--json"])
      assert.deepInclude(document(again) as object, { started: false, pid })
      assert.strictEqual((yield* choirctl(folder, ["daemon", "status"])).code, 0)
      assert.strictEqual((yield* choirctl(folder, ["agent", "start", agent_id])).code, 0)
      const stopped = yield* choirctl(folder, ["daemon", "stop", "--json"])
      assert.deepStrictEqual([stopped.code, document(stopped)], [0, { ok: true, stopped: true, pid }])
      assert.isFalse(existsSync(`/proc/${pid}`))
      assert.deepStrictEqual(processesNaming(`--workspace=${workspace}`), [])
      assert.strictEqual((yield* choirctl(folder, ["daemon", "stop"])).out, "choird is not running\n")
      yield* choirctl(folder, ["daemon", "start"])
      const sessions = yield* choirctl(folder, ["session", "list", "--json"])
      assert.deepStrictEqual(
        (document(sessions) as ReadonlyArray<{ status: string }>).map(({ status }) => status),
        ["active"]
      )
    })
  )

  it.live("repeats the last words of a choird that did not come up, with the code that fits", () =>
    Effect.gen(function* () {
      const { home: folder, write } = yield* home()
      write("config.json", { agents: 5 })
      const ran = yield* choirctl(folder, ["daemon", "start"])
      assert.strictEqual(ran.code, 78)
      assert.match(
        ran.err,
        /choird exited with code 78 \(a problem that an operator must fix\):\nchoird: .*config\.json cannot be used/u
      )
      const nowhere = yield* choirctl(join(folder, "nowhere"), ["daemon", "start"])
      assert.deepStrictEqual([nowhere.code, existsSync(join(folder, "nowhere"))], [78, false])
    })
  )

  it.live("sees and stops a choird that is still starting, since Postgres is away (D45)", () =>
    Effect.gen(function* () {
      const { home: folder, write } = yield* home(() => ({ postgres: { url_secret: "pg" } }))
      write("secrets.json", { pg: "postgres://choir:x@127.0.0.1:1/choir" })
      const starting = yield* Effect.forkChild(choirctl(folder, ["daemon", "start"]))
      const state = Effect.map(choirctl(folder, ["daemon", "status", "--json"]), document)
      const seen = yield* Effect.repeat(state, { until: (found) => (found as { running: boolean }).running })
      assert.deepInclude(seen as object, { ready: false })
      const stopped = yield* choirctl(folder, ["daemon", "stop", "--json"])
      assert.deepInclude(document(stopped) as object, { ok: true, stopped: true })
      const ran = yield* Fiber.join(starting)
      assert.include(ran.err, "choird exited with code 0")
    })
  )

  it.live("stops a choird that has its lock and has not written its pid yet", () =>
    Effect.gen(function* () {
      const { home: folder } = yield* home()
      const script = [
        'exec 3<>"$1"; flock -x 3; echo locked; read -r _; echo $$ >&3',
        'trap "kill \\$!; exit 0" TERM; while :; do sleep 60 3>&- & wait $!; done'
      ].join("; ")
      const holder = spawn("bash", ["-c", script, "choird", join(folder, "choird.lock")], {
        stdio: ["pipe", "pipe", "inherit"]
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => holder.kill("SIGKILL")))
      yield* Effect.promise(() => once(holder.stdout, "data"))
      // The first question reaches this socket, so the holder writes its pid after stop has read the lock.
      mkdirSync(join(folder, "socks"), { recursive: true })
      const operator = createServer((socket) => {
        holder.stdin.write("named\n")
        socket.destroy()
        operator.close()
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => operator.close()))
      yield* Effect.promise(() => once(operator.listen(join(folder, "socks", "choird.sock")), "listening"))
      const stopped = yield* choirctl(folder, ["daemon", "stop", "--json"])
      assert.deepStrictEqual([stopped.code, document(stopped)], [0, { ok: true, stopped: true, pid: holder.pid }])
    })
  )

  it.live("writes a unit, replaces its own and no other, and removes it", () =>
    Effect.gen(function* () {
      const { home: folder } = yield* home()
      const env = { XDG_CONFIG_HOME: yield* temporaryFolder }
      const path = join(env.XDG_CONFIG_HOME, "systemd/user/choird.service")
      const daemon = (word: string) => spawnChoirctl(["--home", folder, "daemon", word, "--json"], { env })
      const next = ["systemctl --user daemon-reload", "systemctl --user enable --now choird", "loginctl enable-linger"]
      const first = yield* daemon("install")
      assert.deepStrictEqual([first.code, document(first)], [0, { ok: true, path, changed: true, next }], first.err)
      assert.include(readFileSync(path, "utf8"), `"--home" "${folder}"`)
      assert.deepInclude(document(yield* daemon("install")) as object, { changed: false })
      assert.deepInclude(document(yield* daemon("uninstall")) as object, { removed: true })
      assert.isFalse(existsSync(path))
      assert.deepInclude(document(yield* daemon("uninstall")) as object, { removed: false })
      writeFileSync(path, "[Unit]\n")
      assert.strictEqual((yield* daemon("install")).code, 1)
      assert.strictEqual(readFileSync(path, "utf8"), "[Unit]\n")
    })
  )
})
