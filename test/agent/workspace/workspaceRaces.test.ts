import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startSwapper } from "../../support/swapper.ts"
import { OUTSIDE_TEXT, temporaryWorkspace, walkUnderRaces } from "../../support/workspace.ts"
import { SIZE } from "../../support/size.ts"

const SWAPS = SIZE.swaps

describe("Workspace", () => {
  it.live(`R39 reads and writes no byte outside through ${SWAPS} racing swaps`, () =>
    Effect.gen(function* () {
      const { root, outside } = yield* temporaryWorkspace
      mkdirSync(join(root, "send"))
      writeFileSync(join(root, "send/file"), "inside")
      writeFileSync(join(outside, "outside-only"), "")
      const swapper = yield* Effect.acquireRelease(
        Effect.sync(() => startSwapper(root, outside)),
        ({ stop }) => Effect.promise(stop)
      )
      const counts = yield* walkUnderRaces(root, SWAPS, Effect.sync(swapper.count))
      assert.strictEqual(counts.leaked, 0)
      assert.deepStrictEqual(readdirSync(outside).sort(), ["file", "outside-only"])
      assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
    })
  )
})
