import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { removeFolder } from "#src/choird/workers/BrowserProcess.ts"

describe("the folder of a browser", () => {
  it.effect("is removed while choird does its other work (R62)", () =>
    Effect.gen(function* () {
      const path = mkdtempSync(join(tmpdir(), "choir-test-folder-"))
      mkdirSync(join(path, "profile"))
      writeFileSync(join(path, "profile/state"), "x")
      const order: Array<string> = []
      setImmediate(() => order.push("other work"))
      yield* Effect.tap(removeFolder(path), () => Effect.sync(() => order.push("removed")))
      assert.deepStrictEqual(order, ["other work", "removed"])
      assert.isFalse(existsSync(path))
    })
  )
})
