/** The identity texts of an image: missing ones are empty, and no agent starts without one that it should have. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync("/tmp/choir-identity-")),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)
const read = (choir: string) => Effect.provide(ImageTexts, Layer.provide(ImageTexts.layer(choir), NodeServices.layer))

describe("identity texts", () => {
  it.effect("are empty where there is no file", () =>
    Effect.gen(function* () {
      const choir = yield* folder
      writeFileSync(join(choir, "SOUL.md"), "kind")
      assert.deepStrictEqual(yield* read(choir), { user: "", soul: "kind", soulCore: "" })
    })
  )

  it.effect("fail the start when one is there and cannot be read", () =>
    Effect.gen(function* () {
      const choir = yield* folder
      mkdirSync(join(choir, "SOUL.md"))
      const error = yield* Effect.flip(read(choir))
      assert.match(error.message, /^SOUL\.md cannot be read: /u)
    })
  )
})
