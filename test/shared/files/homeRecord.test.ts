import { cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../../support/engines.ts"
import {
  homePlacement,
  newHomeRecord,
  placementProblem,
  readHomeRecord,
  writeHomeRecord
} from "#src/shared/files/homeRecord.ts"

const makeHome = Effect.map(temporaryFolder, (folder) => {
  const home = join(folder, "home")
  mkdirSync(home)
  return { folder, home }
})

describe("the record of a home", () => {
  it.effect("is kept whole, and none for a file that is not one", () =>
    Effect.gen(function* () {
      const { home } = yield* makeHome
      assert.strictEqual(homePlacement(home).type, "unrecorded")
      const record = newHomeRecord(home)
      writeHomeRecord(home, record)
      assert.deepStrictEqual(readHomeRecord(home), record)
      for (const text of ["", "{}", `{"id":"x","path":"/"}`, "{", `{"id":"${"0".repeat(32)}"}`]) {
        writeFileSync(join(home, "home.json"), text)
        assert.isUndefined(readHomeRecord(home), text)
      }
    })
  )

  it.effect("tells a moved home from a copied one, and both from one under another name", () =>
    Effect.gen(function* () {
      const { folder, home } = yield* makeHome
      writeHomeRecord(home, newHomeRecord(home))
      assert.strictEqual(homePlacement(home).type, "here")
      const copy = join(folder, "copy")
      cpSync(home, copy, { recursive: true })
      assert.strictEqual(homePlacement(copy).type, "copied")
      const other = join(folder, "other")
      symlinkSync(home, other)
      assert.strictEqual(homePlacement(other).type, "here")
      const moved = join(folder, "moved")
      renameSync(home, moved)
      assert.strictEqual(homePlacement(moved).type, "moved")
      // Another home has taken the old place.
      mkdirSync(home)
      writeHomeRecord(home, newHomeRecord(home))
      assert.strictEqual(homePlacement(moved).type, "moved")
      assert.strictEqual(homePlacement(copy).type, "moved")
      assert.isUndefined(placementProblem(home, homePlacement(home)))
    })
  )
})
