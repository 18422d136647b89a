import { renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { watchOwnCode } from "#src/choird/api/operator/olderCode.ts"
import { temporaryFolder } from "../../../support/engines.ts"

describe("a choird whose program was replaced", () => {
  it.effect("says that it runs older code, and nothing while the file is as it was or away", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const file = join(folder, "choird.js")
      writeFileSync(file, "one")
      const problems = watchOwnCode(file)
      assert.deepStrictEqual(problems(), [])
      rmSync(file)
      assert.deepStrictEqual(problems(), [])
      writeFileSync(join(folder, "new"), "another")
      renameSync(join(folder, "new"), file)
      assert.match(problems().join(), /older code .*: choirctl daemon stop && choirctl daemon start$/u)
    })
  )
})
