import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { defectWords, logDefect } from "#src/shared/defects.ts"

describe("a defect", () => {
  it.effect("is logged under the reference that the person who met it gets (R78)", () =>
    Effect.gen(function* () {
      const refs: Array<unknown> = []
      const logger = Logger.make(({ fiber }) => refs.push(fiber.getRef(References.CurrentLogAnnotations)["ref"]))
      const ref = yield* Effect.provide(logDefect("it broke", new Error("why")), Logger.layer([logger]))
      assert.deepStrictEqual(refs, [ref])
      assert.match(defectWords("it broke", ref), /^it broke; the log of choird says why under ref [0-9a-f]{8}$/u)
    })
  )
})
