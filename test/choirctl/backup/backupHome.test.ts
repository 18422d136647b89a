import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { homeBackupLockPath } from "#src/shared/files/homeLocks.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { requireSpace } from "#src/choirctl/backup/freshFiles.ts"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

/** A home whose workspace lies at a path below it, so that its backup is refused before the database is touched. */
const withWorkspaceAt = Effect.fnUntraced(function* (path: string) {
  const folder = yield* temporaryFolder
  const home = join(folder, "home")
  yield* choirctl(home, ["init"])
  const file = join(home, "config.json")
  const config = JSON.parse(readFileSync(file, "utf8"))
  config.workspaces.main.path = join(home, path)
  mkdirSync(join(home, path), { recursive: true })
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  return { folder, home, file: join(folder, "choir.gz") }
})

describe("a backup", () => {
  for (const [path, owner] of [
    ["sources/work", "Choir"],
    ["workspaces/main/.git/hooks", "git"]
  ] as const)
    it.effect(`refuses a workspace at ${path}, as its restore would`, () =>
      Effect.gen(function* () {
        const { file, home } = yield* withWorkspaceAt(path)
        const ran = yield* choirctl(home, ["backup", file, "--without-secrets"])
        assert.strictEqual(ran.code, 1)
        assert.include(ran.err, `the workspace main is at ${join(home, path)}, inside a folder of ${owner}`)
        assert.include(ran.err, `hint: move it, for example to ${join(home, "workspaces", "main")}`)
        assert.isFalse(existsSync(file))
      })
    )

  it.effect("clears what a killed backup left beside its file, and nothing with a similar name", () =>
    Effect.gen(function* () {
      const { file, folder, home } = yield* withWorkspaceAt("data/work")
      const stays = [".choir.gz.backup-notes", ".choir.gz.backup-a1B2c3", ".choir.gz.backup-a1b2c3d4e5f6.old"]
      for (const name of [...stays, ".choir.gz.backup-a1b2c3d4e5f6"]) mkdirSync(join(folder, name))
      writeFileSync(join(folder, ".choir.gz.backup-0123456789ab"), "mine")
      yield* choirctl(home, ["backup", file, "--without-secrets"])
      const kept = [...stays, ".choir.gz.backup-0123456789ab", "home"]
      assert.deepStrictEqual(readdirSync(folder).toSorted(), kept.toSorted())
    })
  )

  it.live("is refused while another backup of the home runs", () =>
    Effect.gen(function* () {
      const { file, home } = yield* withWorkspaceAt("workspaces/work")
      yield* holdLockFile(homeBackupLockPath(home))
      const ran = yield* choirctl(home, ["backup", file, "--without-secrets", "--json"])
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err + ran.out, `another choirctl is backing up ${home}`)
      assert.isFalse(existsSync(file))
    }).pipe(Effect.scoped)
  )

  it.effect("is not begun on a disk without room for it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* requireSpace(folder, 1)
      const refused = yield* Effect.flip(requireSpace(folder, 2 ** 60))
      assert.match(refused.problem, / has .* free, and this needs about 1048576\.0 TiB$/u)
    })
  )
})
