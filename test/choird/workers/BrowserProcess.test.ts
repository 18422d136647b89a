import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ChromiumProgram, removeFolder, startBrowserProcess } from "#src/choird/workers/BrowserProcess.ts"

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

describe("the process that starts a browser", () => {
  it.live("has a home folder of its own, so that it starts for a user id that this host has no name for", () =>
    Effect.gen(function* () {
      const { child, script } = yield* startBrowserProcess
      const environment = readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0")
      assert.include(environment, `HOME=${join(script, "../driver")}`)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(
          Layer.succeed(ChromiumProgram, () => "/usr/bin/true"),
          Layer.mock(Cgroups, {
            enforced: { cpus: false, memory_mb: false, pids: false },
            create: () => Effect.succeed({ joins: [] } as never),
            members: () => Effect.succeed([])
          })
        )
      )
    )
  )
})
