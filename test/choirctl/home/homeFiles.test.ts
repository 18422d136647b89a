import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writePrivate } from "#src/choirctl/home/homeFiles.ts"
import { temporaryFolder } from "../../support/engines.ts"

describe("a file of the home", () => {
  it.effect("that cannot be written is named with why not and what to do, and nothing is left of it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      // A name that is whole only as long as nothing is put before and after it.
      const place = join(folder, "s".repeat(250))
      const { hint, problem, type } = yield* Effect.flip(writePrivate(place, "{}"))
      assert.strictEqual(type, "FILE")
      assert.match(problem, /s{250} cannot be written and is unchanged: ENAMETOOLONG/u)
      assert.include(hint, `the owner of ${folder}, then run this again`)
      assert.isFalse(existsSync(place))
      assert.deepStrictEqual(readdirSync(folder), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
