import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { existsSync, lstatSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { makeLabelReceived } from "#src/choird/gateway/receivedFiles.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { temporaryFolder } from "../../support/engines.ts"

const SESSION = SessionId.make("0123456789abcdef")

describe("the label of a file from a person", () => {
  it.effect("is stored before the agent that works there is told, and told once however often it is asked for", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const folder = join(home, "socks/agents", SESSION)
      const mark = join(folder, "received")
      const order: Array<string> = []
      const services = Layer.merge(
        Layer.mock(ConfigStore, { home }),
        Layer.mock(WorkspaceLabels, {
          receive: (path) => Effect.sync(() => void order.push(`${path} ${existsSync(mark) ? "told" : "not told"}`))
        })
      )
      const label = yield* Effect.provide(makeLabelReceived, services)
      // Nobody works there.
      yield* label("/w", null)
      yield* label("/w", SESSION)
      mkdirSync(folder, { recursive: true })
      yield* label("/w", SESSION)
      assert.isTrue(lstatSync(mark).isFile())
      yield* label("/w", SESSION)
      assert.deepStrictEqual(order, ["/w not told", "/w not told", "/w not told", "/w told"])
      const other = join(home, "socks/agents", "fedcba9876543210")
      mkdirSync(other)
      symlinkSync(join(home, "elsewhere"), join(other, "received"))
      yield* label("/w", SessionId.make("fedcba9876543210"))
      assert.isFalse(existsSync(join(home, "elsewhere")))
    })
  )
})
