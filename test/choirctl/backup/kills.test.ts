import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { BACKUP_STEPS } from "#src/choirctl/backup/backupHome.ts"
import { RESTORE_STEPS } from "#src/choirctl/backup/restoreHome.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { choirctl } from "../../support/choirctl.ts"
import { putDatabase, temporaryFolder } from "../../support/engines.ts"
import { SIZE } from "../../support/size.ts"

const SCRIPT = join(import.meta.dirname, "../../support/killedAtStep.ts")
const LONG = { timeout: 600_000 }
/** Some of the steps, among them the last, which puts the result in place; all at size `full`. */
const isTried = (_: string, at: number, all: ReadonlyArray<string>) => (all.length - 1 - at) % SIZE.deathEvery === 0

/** Everything in a folder: names, kinds, modes, contents. The file of a lock whose holder was killed is not of the home. */
const digest = (folder: string) => {
  const hash = createHash("sha256")
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    ({ name }) => name !== "choird.lock" && name !== "files.lock"
  )
  for (const entry of entries.toSorted((a, b) => (join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1))) {
    const path = join(entry.parentPath, entry.name)
    hash.update(`${path.slice(folder.length)}\0`)
    if (entry.isSymbolicLink()) hash.update(readlinkSync(path))
    else hash.update(String(statSync(path).mode))
    if (entry.isFile()) hash.update(readFileSync(path))
  }
  return hash.digest("hex")
}

/** The script in a process of its own; answers how it ended. */
const killed = (...args: ReadonlyArray<string>) =>
  Effect.callback<string>((resume) => {
    const child = spawn(process.execPath, [SCRIPT, ...args], { stdio: ["ignore", "ignore", "pipe"] })
    let err = ""
    child.stderr.on("data", (part: Buffer) => (err += part.toString()))
    child.once("close", (code, signal) => resume(Effect.succeed(signal ?? `${code}: ${err}`)))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** A home with a repository and a workspace; `provider` tells two homes apart. */
const makeHome = Effect.fnUntraced(function* (home: string, provider: string) {
  mkdirSync(join(home, "workspaces/main"), { recursive: true })
  chmodSync(home, 0o700)
  writeFileSync(join(home, "workspaces/main/notes.txt"), provider)
  const starter = join(home, "..", `starter-${provider}`)
  mkdirSync(starter)
  writeFileSync(join(starter, "USER.md"), provider)
  yield* createRepo(join(home, "sources/global"), starter)
  const config = {
    global_repo: { url: join(home, "sources/global") },
    workspaces: { main: { path: join(home, "workspaces/main") } },
    models: { small: { provider, model: "m", endpoint: "http://127.0.0.1:1/v1" } }
  }
  writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 })
  writeFileSync(join(home, "secrets.json"), "{}", { mode: 0o600 })
}, Effect.provide(NodeServices.layer))

const provider = (home: string) =>
  Effect.map(loadFiles(home), ({ config }) => Object.values(config.models)[0]?.provider)

describe("a backup of a home that is killed", () => {
  it.live(
    "leaves the earlier file or none at its steps, and the next one clears what it left",
    Effect.fnUntraced(function* () {
      const folder = yield* temporaryFolder
      const [home, file] = [join(folder, "home"), join(folder, "choir.tar.gz")]
      yield* makeHome(home, "first")
      yield* putDatabase(home)
      for (const step of BACKUP_STEPS.filter(isTried)) {
        assert.strictEqual(yield* killed("backup", home, file, step), "SIGKILL", step)
        assert.isFalse(existsSync(file), step)
      }
      const made = yield* choirctl(home, ["backup", file, "--json"])
      assert.strictEqual(made.code, 0, made.err + made.out)
      assert.deepStrictEqual(
        readdirSync(folder).filter((name) => name.startsWith(".")),
        []
      )
      const before = readFileSync(file)
      assert.strictEqual(yield* killed("backup", home, file, BACKUP_STEPS.at(-1) ?? ""), "SIGKILL")
      assert.isTrue(before.equals(readFileSync(file)))
    }, Effect.scoped),
    LONG
  )
})

describe("a restore that is killed", () => {
  it.live(
    "leaves the old home or the new one at its steps, and the next restore succeeds",
    Effect.fnUntraced(function* () {
      const folder = yield* temporaryFolder
      const [home, file, source] = [join(folder, "home"), join(folder, "choir.tar.gz"), join(folder, "source")]
      yield* makeHome(source, "new")
      yield* putDatabase(source)
      const made = yield* choirctl(source, ["backup", file, "--workspaces", "--json"])
      assert.strictEqual(made.code, 0, made.err + made.out)
      yield* makeHome(home, "old")
      const old = digest(home)
      const last = RESTORE_STEPS.at(-1)
      for (const step of RESTORE_STEPS.filter(isTried)) {
        assert.strictEqual(yield* killed("restore", home, file, step), "SIGKILL", step)
        if (step !== last) assert.strictEqual(digest(home), old, step)
      }
      // Between the two renames: there is no home until the first program opens it, which finds the new one.
      assert.isFalse(existsSync(home))
      assert.strictEqual(yield* provider(home), "new")
      assert.strictEqual(readFileSync(join(home, "workspaces/main/notes.txt"), "utf8"), "new")
      assert.strictEqual(readFileSync(join(home, "sources/global/USER.md"), "utf8"), "new")
      assert.isTrue(existsSync(join(home, "data/PG_VERSION")))
      const aside = readdirSync(folder).filter((name) => name.startsWith("home.before-restore-"))
      assert.strictEqual(aside.length, 1)
      assert.strictEqual(digest(join(folder, aside[0] ?? "")), old)

      writeFileSync(join(home, "workspaces/main/notes.txt"), "changed since")
      const refused = yield* choirctl(home, ["restore", file])
      assert.strictEqual(refused.code, 2, refused.err)
      assert.include(refused.err, "--yes")
      const restored = yield* choirctl(home, ["restore", file, "--yes", "--json"])
      assert.strictEqual(restored.code, 0, restored.err + restored.out)
      assert.strictEqual(readFileSync(join(home, "workspaces/main/notes.txt"), "utf8"), "new")
      assert.deepStrictEqual(
        readdirSync(folder).filter((name) => /restoring|restored/u.test(name)),
        []
      )
    }, Effect.scoped),
    LONG
  )
})
