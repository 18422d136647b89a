/** A manifest whose pattern takes for ever on an input that fits it almost. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { externalTool } from "../support/externalTool.ts"

describe("a pattern of a manifest", () => {
  it.live("never runs on what a model gives", () =>
    Effect.gen(function* () {
      const { tool } = yield* externalTool("cat", {
        input_schema: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } }
      })
      // Short enough to be refused at once where the pattern runs after all: a longer one would hang this test.
      yield* tool.prepare({ text: "aa!" })
      const began = performance.now()
      yield* tool.prepare({ text: `${"a".repeat(60)}!` })
      assert.isBelow(performance.now() - began, 10_000)
    })
  )
})
