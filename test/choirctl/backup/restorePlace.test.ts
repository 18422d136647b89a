import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { takePlace } from "#src/choirctl/backup/restorePlace.ts"
import { finishRestore } from "#src/shared/files/interruptedRestore.ts"
import { temporaryFolder } from "../../support/engines.ts"

describe("the place of a home that is restored", () => {
  it.live(
    "is filled by a restore that was interrupted before its last step, and by no folder with a similar name",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const home = join(folder, "choir")
        for (const time of ["copy", "2026-01-02"]) {
          mkdirSync(`${home}.restored-${time}`)
          mkdirSync(`${home}.before-restore-${time}`)
        }
        assert.isFalse(finishRestore(home))
        const time = "2026-01-02T03-04-05-678Z"
        mkdirSync(`${home}.restored-${time}`)
        assert.isFalse(finishRestore(home))
        mkdirSync(`${home}.before-restore-${time}`)
        assert.isTrue(finishRestore(home))
        assert.isTrue(existsSync(home))
      }).pipe(Effect.scoped)
  )

  it.live("clears what killed restores left and nothing else beside the home", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const stays = [
        "choir.restored-test",
        "choir.restored-2026-01-02T03-04-05-678Z-copy",
        "choir.restored-",
        "choir.restoring-by-hand",
        "choir.restoring-backup",
        "choir.restoring-a1b2c3d4e5f",
        "choirs.restoring-a1b2c3d4e5f6"
      ]
      const left = ["choir.restored-2026-01-02T03-04-05-678Z", "choir.restoring-a1b2c3d4e5f6"]
      for (const name of [...stays, ...left]) {
        mkdirSync(join(folder, name))
        writeFileSync(join(folder, name, "notes.txt"), name)
      }
      symlinkSync(join(folder, "choir.restored-test"), join(folder, "choir.restoring-linked"))
      symlinkSync(join(folder, "choir.restored-test"), join(folder, "choir.restoring-0123456789ab"))
      writeFileSync(join(folder, "choir.restoring-0123456789cd"), "")
      yield* Effect.scoped(takePlace(join(folder, "choir")))
      const kept = [...stays, "choir.restoring-linked", "choir.restoring-0123456789ab", "choir.restoring-0123456789cd"]
      assert.deepStrictEqual(readdirSync(folder).toSorted(), kept.toSorted())
      for (const name of stays) assert.isTrue(existsSync(join(folder, name, "notes.txt")), name)
    }).pipe(Effect.scoped)
  )

  it.live("clears the folders that another restore made and did not remove", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const home = join(folder, "choir")
      const { staging, time } = yield* Effect.scoped(takePlace(home))
      for (const path of [staging, `${home}.restored-${time}`]) mkdirSync(path)
      yield* Effect.scoped(takePlace(home))
      assert.deepStrictEqual(readdirSync(folder), [])
    }).pipe(Effect.scoped)
  )
})
