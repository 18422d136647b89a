import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { makeArchive } from "#src/choirctl/backup/ArchiveWriter.ts"
import { ARCHIVE_FORMAT, CONFIG, FORMAT, MANIFEST } from "#src/choirctl/backup/manifest.ts"
import { restoreHome } from "#src/choirctl/backup/restoreHome.ts"
import { restoredHomeText } from "#src/choirctl/commands/restore.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { temporaryFolder } from "../../support/engines.ts"

const ARCHIVED = "archive/agent/0123456789abcdef.jsonl.gz"

const contents = {
  format: ARCHIVE_FORMAT,
  choir: "0.1.0",
  created_at: "2026-01-01T00:00:00.000Z",
  home: "/srv/old home; id",
  real_home: "/srv/old home; id",
  database: { engine: "postgres" as const, sessions: 0, events: 0 },
  secrets: { names: [], sealed: false },
  sources: [],
  workspaces: [],
  left_out: []
}

/** A backup without a database whose configuration has these workspaces below the old home, restored to `home`. */
const restored = Effect.fnUntraced(function* (
  folder: string,
  home: string,
  path: string,
  contentsToo = true,
  format = ARCHIVE_FORMAT
) {
  const file = join(folder, "choir.tar.gz")
  const at = new Date(0)
  const config = {
    global_repo: { url: `${contents.home}/sources/global` },
    postgres: { url_secret: "postgres-url" },
    workspaces: { main: { path: `${contents.home}/${path}` } }
  }
  yield* Effect.gen(function* () {
    const archive = yield* makeArchive(file)
    yield* archive.text(FORMAT, JSON.stringify({ format, choir: "0.1.0" }), at)
    yield* archive.text(CONFIG, JSON.stringify(config), at)
    yield* archive.text("database.gz", "dump", at)
    if (contentsToo) yield* archive.text("workspaces/main/post-checkout", "#!/bin/sh\n", at)
    if (format > 1) yield* archive.text(ARCHIVED, "events", at)
    const members = archive.members().filter(({ name }) => name !== FORMAT)
    yield* archive.text(MANIFEST, JSON.stringify({ ...contents, format, members }), at)
    yield* archive.end
  }).pipe(Effect.scoped)
  return yield* restoreHome<never, never>({
    home,
    file,
    force: false,
    agree: () => Effect.succeed({ passphrase: undefined, secrets: true }),
    step: () => (work) => work
  }).pipe(Effect.result)
})

const live = Layer.merge(NodeServices.layer, Screen.layer)
const refused = [
  "sources/x/.git/hooks",
  "sources/x",
  "workspaces/main/.git/hooks",
  "workspaces/x/.GIT",
  "data/main",
  "socks/main",
  "images/main",
  "repos/main",
  "logs"
]

describe("a restored home", () => {
  for (const path of refused)
    it.live(`is refused when a workspace would be at ${path}`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const home = join(folder, "choir")
        const result = yield* restored(folder, home, path)
        const message = Result.isFailure(result) ? result.failure.message : "restored"
        assert.match(message, /is refused: its workspace main is at .*Nothing was changed/u)
        assert.include(message, join(home, path))
        assert.deepStrictEqual(readdirSync(folder), ["choir.tar.gz"])
      }).pipe(Effect.provide(live), Effect.scoped)
    )

  it.live("has the archived sessions, for its owner alone; a backup of format 1 has none", () =>
    Effect.gen(function* () {
      for (const format of [1, ARCHIVE_FORMAT]) {
        const folder = yield* temporaryFolder
        const home = join(folder, "choir")
        const result = yield* restored(folder, home, "workspaces/main", true, format)
        if (Result.isFailure(result)) return assert.fail(result.failure.message)
        assert.strictEqual(existsSync(join(home, "archive")), format > 1)
        if (format === 1) continue
        assert.strictEqual(readFileSync(join(home, ARCHIVED), "utf8"), "events")
        for (const [name, mode] of [
          [ARCHIVED, 0o600],
          ["archive/agent", 0o700],
          ["archive", 0o700]
        ] as const)
          assert.strictEqual(statSync(join(home, name)).mode & 0o777, mode, name)
      }
      return undefined
    }).pipe(Effect.provide(live), Effect.scoped)
  )

  it.live("has its workspaces, and its paths are quoted in the commands to paste", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const home = join(folder, "it's")
      mkdirSync(home)
      writeFileSync(join(home, "old"), "")
      const result = yield* restored(folder, home, "workspaces/main")
      if (Result.isFailure(result)) return assert.fail(result.failure.message)
      assert.deepStrictEqual(readdirSync(join(home, "workspaces/main")), ["post-checkout"])
      const done = result.success
      const quoted = `'${folder}/it'\\''s'`
      const command = `choirctl --home ${quoted} db restore '${folder}/it'\\''s/database.gz' --moved-from '/srv/old home; id'`
      assert.strictEqual(done.database_command, command)
      const text = restoredHomeText({ ...done, backup: contents })
      assert.include(text, `rm -rf '${folder}/it'\\''s.before-restore-`)
      assert.include(text, `  ${command}\n`)
      assert.include(text, `choirctl --home ${quoted} daemon start`)
      return undefined
    }).pipe(Effect.provide(live), Effect.scoped)
  )
})
