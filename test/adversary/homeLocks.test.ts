import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, realpathSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { spawnChoirctl } from "../support/choirctl.ts"
import { putDatabase } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { ensureDebianPackages, whyNotRoot } from "../support/packages.ts"

const CONNECTIONS = 300
/** What a choird opens by itself meanwhile: its database opens the files of each table that it reads for the first time. */
const DESCRIPTORS_OF_ITS_OWN = 150

/**
 * Takes every name by which a home could be held, keeps connections to those that somebody else holds, and tries the lock files. Prints
 * what it could do, and stays until it is killed.
 */
const ATTACK = `
  const { connect, createServer } = require("node:net")
  const { readFileSync, openSync } = require("node:fs")
  const [home, hash, connections] = process.argv.slice(1)
  const named = ["choird/", "choir-files/"].map((kind) => "\\0" + kind + hash)
  const listed = readFileSync("/proc/net/unix", "utf8").split("\\n").map((line) => line.split(" ").at(-1))
  const abstract = listed.filter((name) => name.startsWith("@") && name.includes(hash)).map((name) => "\\0" + name.slice(1))
  const done = { opened: [], connected: 0 }
  for (const file of ["choird.lock", "files.lock", "backup.lock"])
    try { openSync(home + "/" + file, "r"); done.opened.push(file) } catch {}
  const dials = []
  for (const name of new Set([...named, ...abstract])) {
    createServer(() => {}).on("error", () => {}).listen({ path: name })
    for (let each = 0; each < Number(connections); each++)
      dials.push(new Promise((resolve) =>
        connect({ path: name, allowHalfOpen: true }).on("connect", () => resolve(done.connected++)).on("error", resolve)))
  }
  Promise.all(dials).then(() => console.log(JSON.stringify(done)))
  setInterval(() => {}, 1000)
`

/** Where a hostile program may run: an agent's sandbox, which shares the network and lacks the home, and another user's login. */
const PLACES: Readonly<Record<string, (home: string) => ReadonlyArray<string>>> = {
  "a sandbox": (home) => ["bwrap", "--dev-bind", "/", "/", "--tmpfs", home],
  "another user": () => ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
}

const attack = (place: ReadonlyArray<string>, home: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const real = realpathSync(home)
      const line = [...place, process.execPath, "--eval", ATTACK, real, sha256(real), String(CONNECTIONS)]
      const [program = "", ...args] = line
      const child = spawn(program, args, { cwd: "/", stdio: ["ignore", "pipe", "inherit"], detached: true })
      const [said] = (await once(child.stdout, "data")) as [Buffer]
      return { child, could: JSON.parse(said.toString()) as { opened: ReadonlyArray<string> } }
    }),
    ({ child }) => Effect.sync(() => process.kill(-(child.pid ?? 0), "SIGKILL"))
  )

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length

const suite = "the locks of a home"
const reason = whyNotRoot(suite) ?? ensureDebianPackages(["bubblewrap", "util-linux"], suite)

describe(suite, () => {
  for (const [name, place] of Object.entries(PLACES))
    it.live.skipIf(reason !== undefined)(
      `are out of reach of ${name}, which can neither keep choird from starting, drain it, nor keep a secret from being deleted`,
      () =>
        Effect.gen(function* () {
          const choir = yield* makeInstallation({
            endpoint: "http://127.0.0.1:9/v1",
            secrets: { key: "value" },
            database: putDatabase
          })
          const { home } = choir
          // Names that the attacker holds before choird starts.
          yield* attack(place(home), home)
          const choird = yield* choir.start
          const before = descriptorsOf(choird.pid)
          const { could } = yield* attack(place(home), home)
          assert.deepStrictEqual(could.opened, [])
          assert.isBelow(descriptorsOf(choird.pid), before + DESCRIPTORS_OF_ITS_OWN)
          const deleted = yield* spawnChoirctl(["--home", home, "secret", "delete", "key", "--yes"])
          assert.strictEqual(deleted.code, 0, deleted.err)
          const stopped = yield* spawnChoirctl(["--home", home, "daemon", "stop"])
          assert.strictEqual(stopped.code, 0, stopped.err)
          assert.strictEqual(yield* choird.exited, 0)
        }).pipe(Effect.scoped)
    )
})
