import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import type { ChatEvent } from "#schema/ChatApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { backupHome } from "#src/choirctl/backup/backupHome.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { bundledChoird } from "../support/bundles.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { postgresDatabase, putDatabase, temporaryFolder } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"
import { atFull } from "../support/size.ts"

const PASSPHRASE = "correct horse battery"
const SECRET = "s3cr3t-value-of-the-key"
const TOOL = {
  llm: { name: "moon.phase", description: "Tell the phase of the moon", input_schema: { type: "object" } },
  runtime: { exec_path: "moon.phase", effect: "none" }
}
const PROGRAM = `#!/bin/sh
echo '{"status":"success","summary":"the moon is full"}'
`

const git = (repository: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", repository, ...args], { encoding: "utf8" })

const replies = (shown: ReadonlyArray<ChatEvent>) =>
  shown.flatMap((event) => (event.type === "message" && event.kind === "reply" ? [event.text] : []))

/** A home in which somebody has lived: a conversation, a tool of the agent's own, an identity, a secret, files in the workspace. */
const livedIn = Effect.fnUntraced(function* (
  endpoint: string,
  more: Parameters<typeof makeInstallation>[0] | object = {}
) {
  const lost = yield* makeInstallation({
    endpoint,
    ...(Reflect.has(more, "postgres") ? {} : { database: putDatabase }),
    ...more,
    secrets: { "model-key": SECRET, ...Reflect.get(more, "secrets") },
    config: ({ endpoint }) => ({
      models: { test: { provider: "test", model: "offline-model", endpoint, temperature: 0, secret: "model-key" } }
    })
  })
  const source = join(lost.home, "sources/agent")
  writeFileSync(join(source, "tools/moon.phase.json"), JSON.stringify(TOOL))
  writeFileSync(join(source, "tools/moon.phase"), PROGRAM, { mode: 0o755 })
  writeFileSync(join(source, "SOUL.md"), "You are a moon watcher.\n")
  git(source, "config", "user.name", "Ada")
  git(source, "config", "user.email", "ada@example.org")
  git(source, "add", "--all")
  git(source, "commit", "--quiet", "--message=Watch the moon")
  git(source, "tag", "moon")
  writeFileSync(join(source, "draft.txt"), "not committed")
  mkdirSync(join(lost.workspace, "notes"))
  writeFileSync(join(lost.workspace, "notes/one.txt"), "one")
  symlinkSync("/etc/passwd", join(lost.workspace, "link"))
  return lost
})

/** A backup in this process, which does something as each of its steps begins. */
const backedUp = Effect.fnUntraced(function* (
  home: string,
  file: string,
  before: (step: string) => Effect.Effect<void>
) {
  const made: Array<Effect.Success<ReturnType<typeof backupHome>>> = []
  const work = backupHome<never>({
    home,
    file,
    version: "0.1.0",
    workspaces: false,
    archives: true,
    secrets: false,
    passphrase: undefined,
    step: (name) => (work) => Effect.andThen(before(name), work)
  }).pipe(Effect.map((done) => void made.push(done)))
  const command = root.pipe(Command.withSubcommands([Command.make("work", {}, () => work)]))
  yield* Command.runWith(command, { version: "0" })(["--home", home, "work"]).pipe(
    Effect.provide(Layer.mergeAll(NodeServices.layer, Screen.layer, bundledChoird))
  )
  const [done] = made
  return done ?? assert.fail("the backup ended without a result")
})

/** A running installation with a built agent, and a folder for what is made of it. */
const lived = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const folder = yield* temporaryFolder
  const lost = yield* livedIn(provider.endpoint)
  const first = yield* lost.start
  yield* lost.build
  return { provider, folder, lost, first }
})

describe("a backup of a whole home", () => {
  it.live(
    "brings sessions, own tools, identity, secrets and workspaces to another path, where the agent builds and answers, and has the archived sessions unless they are left out",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const folder = yield* temporaryFolder
        const file = join(folder, "choir.tar.gz")
        const lost = yield* livedIn(provider.endpoint)
        const first = yield* lost.start
        yield* lost.build
        const old = (yield* lost.api.agents.start({ params: lost.params, payload: {} })).session_id as SessionId
        yield* Effect.flatMap(lost.send("one", "hello"), ({ inbox_id }) => lost.settled(inbox_id))
        yield* lost.api.agents.stop({ params: lost.params })
        const kept = yield* lost.events(old)
        const archived = yield* choirctl(lost.home, ["session", "archive", old])
        assert.strictEqual(archived.code, 0, archived.err)
        // What a writer that was killed left is no session.
        writeFileSync(join(lost.home, "archive/demo/0123456789abcdef.jsonl.gz.part"), "half")
        const { session_id } = yield* lost.api.agents.start({ params: lost.params, payload: {} })
        const id = session_id as SessionId
        assert.notStrictEqual(id, old)
        yield* Effect.flatMap(lost.send("two", "hello"), ({ inbox_id }) => lost.settled(inbox_id))
        const acknowledged = yield* lost.events(id)

        const made = yield* choirctl(lost.home, ["backup", file, "--workspaces", "--passphrase-stdin", "--json"], {
          stdin: `${PASSPHRASE}\n`
        })
        assert.strictEqual(made.code, 0, made.err + made.out)
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)
        assert.deepInclude(document(made), { ok: true, secrets: { names: ["model-key"], sealed: true, values: true } })
        assert.nestedPropertyVal(document(made), "sources[0].uncommitted", 1)
        assert.nestedPropertyVal(document(made), "archived.sessions", 1)
        assert.include(made.out, "1 uncommitted files in sources/agent")
        assert.notInclude(execFileSync("gzip", ["-dc", file]).toString("latin1"), SECRET)

        const without = ["--without-secrets", "--without-archives"]
        const left = yield* choirctl(lost.home, ["backup", join(folder, "without.tar.gz"), ...without])
        assert.include(left.out, "archive/, the only copy of archived sessions: copy this folder")
        assert.notMatch(left.out, /(?:outgoing|trials): not one of/u)

        const home = join(folder, "elsewhere")
        const running = yield* choirctl(lost.home, ["restore", file, "--yes", "--json"])
        assert.nestedPropertyVal(document(running), "error.type", "CHOIRD_RUNS")
        yield* first.signal("SIGTERM")
        yield* first.exited
        rmSync(lost.home, { recursive: true })

        // A short one is as wrong as any other: its length is not what is the matter with it.
        for (const stdin of ["another passphrase", "short"]) {
          const to = ["--to", home, "--passphrase-stdin", "--json"]
          const wrong = yield* choirctl(lost.home, ["restore", file, ...to], { stdin })
          assert.nestedPropertyVal(document(wrong), "error.type", "PASSPHRASE")
        }
        assert.isFalse(existsSync(home))
        const restored = yield* choirctl(lost.home, ["restore", file, "--to", home, "--passphrase-stdin"], {
          stdin: PASSPHRASE
        })
        assert.strictEqual(restored.code, 0, restored.err + restored.out)
        assert.match(restored.out, /the files of 1 archived session \(/u)
        assert.notInclude(readFileSync(join(home, "config.json"), "utf8"), lost.home)
        assert.deepStrictEqual(JSON.parse(readFileSync(join(home, "secrets.json"), "utf8")), { "model-key": SECRET })
        for (const [name, mode] of [
          ["", 0o700],
          ["config.json", 0o600],
          ["secrets.json", 0o600]
        ] as const)
          assert.strictEqual(statSync(join(home, name)).mode & 0o777, mode, name)
        const source = join(home, "sources/agent")
        assert.strictEqual(git(source, "status", "--porcelain"), "")
        assert.strictEqual(git(source, "log", "-1", "--format=%an %s", "moon"), "Ada Watch the moon\n")
        assert.strictEqual(git(source, "symbolic-ref", "HEAD"), "refs/heads/main\n")
        assert.strictEqual(git(source, "config", "--local", "user.email"), "ada@example.org\n")
        assert.strictEqual(readFileSync(join(source, "SOUL.md"), "utf8"), "You are a moon watcher.\n")
        assert.strictEqual(readFileSync(join(home, "workspaces/main/notes/one.txt"), "utf8"), "one")
        assert.strictEqual(
          execFileSync("readlink", [join(home, "workspaces/main/link")], { encoding: "utf8" }),
          "/etc/passwd\n"
        )

        const found = yield* makeInstallation({ endpoint: provider.endpoint, home })
        yield* found.start
        yield* found.build
        const tools = yield* choirctl(home, ["tool", "list", "demo"])
        assert.include(tools.out, "moon.phase")
        const versions = yield* choirctl(home, ["config", "history", "--json"])
        assert.strictEqual((document(versions) as ReadonlyArray<unknown>).length, 1, versions.out)
        const detail = yield* found.api.agents.status({ params: found.params })
        if (detail.status !== "running") yield* found.api.agents.start({ params: found.params, payload: {} })
        const answered = yield* Effect.flatMap(found.send("three", "call moon.phase {}"), ({ inbox_id }) =>
          found.settled(inbox_id)
        )
        assert.strictEqual(replies(answered).length, 1, JSON.stringify(answered))
        const history = yield* found.events(id)
        assert.deepStrictEqual(history.slice(0, acknowledged.length), acknowledged)
        assert.deepStrictEqual(historyProblems(id, history), [])
        assert.isTrue(
          history.some(({ event }) => event.event_type === "ToolCallRequested" && event.payload.tool === "moon.phase")
        )
        assert.deepStrictEqual(yield* found.events(old), kept)
        for (const session of [id, old]) {
          const verified = yield* choirctl(home, ["session", "verify", session])
          assert.strictEqual(verified.code, 0, verified.err)
        }
      }).pipe(Effect.scoped)
  )

  atFull(it.live)(
    "has the file of an archived session that is deleted while it is made, and tells of one that was changed",
    () =>
      Effect.gen(function* () {
        const { first, folder, lost, provider } = yield* lived
        const archive = Effect.gen(function* () {
          const { session_id } = yield* lost.api.agents.start({ params: lost.params, payload: {} })
          const id = session_id as SessionId
          yield* lost.api.agents.stop({ params: lost.params })
          const archived = yield* choirctl(lost.home, ["session", "archive", id])
          assert.strictEqual(archived.code, 0, archived.err)
          return { id, path: join(lost.home, `archive/demo/${id}.jsonl.gz`) }
        })
        const [deleted, changed] = [yield* archive, yield* archive]
        appendFileSync(changed.path, "rot")

        const file = join(folder, "choir.tar.gz")
        const made = yield* backedUp(lost.home, file, (step) =>
          // The database is copied by then, and no file of an archived session.
          step === "bundling the sources"
            ? Effect.map(choirctl(lost.home, ["session", "delete", deleted.id, "--yes"]), ({ code, err }) =>
                assert.strictEqual(code, 0, err)
              )
            : Effect.void
        )
        assert.deepStrictEqual(
          made.damaged.map(({ session_id }) => session_id),
          [changed.id]
        )
        assert.deepInclude(made.manifest.archived, { sessions: 2 })
        yield* choirctl(lost.home, ["prune"])
        assert.isFalse(existsSync(deleted.path))
        const home = join(folder, "elsewhere")
        const restored = yield* choirctl(home, ["restore", file])
        assert.strictEqual(restored.code, 0, restored.err + restored.out)
        assert.isTrue(existsSync(join(home, `archive/demo/${deleted.id}.jsonl.gz`)))

        const told = yield* choirctl(lost.home, ["backup", file, "--without-secrets", "--yes"])
        assert.strictEqual(told.code, 0, told.err)
        assert.include(told.err, `warning: archived session ${changed.id} is damaged: its file has changed since then`)
        assert.include(
          told.out,
          `archive/demo/${changed.id}.jsonl.gz as it was archived: its file has changed since then`
        )
        yield* first.signal("SIGTERM")
        yield* first.exited
        yield* choirctl(home, ["secret", "set", "model-key"], { stdin: SECRET })
        const found = yield* makeInstallation({ endpoint: provider.endpoint, home })
        yield* found.start
        const verified = yield* choirctl(home, ["session", "verify", deleted.id])
        assert.strictEqual(verified.code, 0, verified.err)
      }).pipe(Effect.scoped)
  )

  atFull(it.live)("of a server's database restores the home and names the command that restores the database", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const folder = yield* temporaryFolder
      const [file, home] = [join(folder, "choir.tar.gz"), join(folder, "elsewhere")]
      const url = Effect.map(
        postgresDatabase,
        ({ database, host, port, user }) => `postgres://${user}@${encodeURIComponent(host)}:${port}/${database}`
      )
      const postgres = { url_secret: "postgres-url" }
      const lost = yield* livedIn(provider.endpoint, { postgres, secrets: { "postgres-url": yield* url } })
      const first = yield* lost.start
      yield* lost.build
      const { session_id } = yield* lost.api.agents.start({ params: lost.params, payload: {} })
      const id = session_id as SessionId
      yield* Effect.flatMap(lost.send("one", "hello"), ({ inbox_id }) => lost.settled(inbox_id))
      yield* first.signal("SIGTERM")
      yield* first.exited
      const made = yield* choirctl(lost.home, ["backup", file, "--without-secrets", "--json"])
      assert.strictEqual(made.code, 0, made.err + made.out)
      rmSync(lost.home, { recursive: true })

      const restored = yield* choirctl(home, ["restore", file])
      assert.strictEqual(restored.code, 0, restored.err + restored.out)
      assert.include(restored.out, `choirctl --home ${home} secret set postgres-url`)
      const next = /^ {2}choirctl --home \S+ (db restore .*)$/mu.exec(restored.out)?.[1] ?? ""
      assert.notStrictEqual(next, "", restored.out)
      yield* choirctl(home, ["secret", "set", "postgres-url"], { stdin: yield* url })
      yield* choirctl(home, ["secret", "set", "model-key"], { stdin: SECRET })
      const loaded = yield* choirctl(home, next.split(" "))
      assert.strictEqual(loaded.code, 0, loaded.err)
      const found = yield* makeInstallation({ endpoint: provider.endpoint, home })
      yield* found.start
      yield* found.build
      const detail = yield* found.api.agents.status({ params: found.params })
      if (detail.status !== "running") yield* found.api.agents.start({ params: found.params, payload: {} })
      const answered = yield* Effect.flatMap(found.send("two", "hello"), ({ inbox_id }) => found.settled(inbox_id))
      assert.strictEqual(replies(answered).length, 1)
      const verified = yield* choirctl(home, ["session", "verify", id])
      assert.strictEqual(verified.code, 0, verified.err)
    }).pipe(Effect.scoped)
  )
})
