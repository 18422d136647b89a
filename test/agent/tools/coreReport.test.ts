import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { coreReport } from "#src/agent/tools/coreTools.ts"

describe("the report of a job", () => {
  it.effect("proposes a tool in its text, and has no field that neither edge nor a person would see", () =>
    Effect.gen(function* () {
      const proposal = { kind: "tool_proposal", text: "Run the tests: they are quick." }
      const { locks } = yield* coreReport.prepare(proposal)
      assert.deepStrictEqual(locks, [])
      for (const field of ["tool", "args", "why", "expected_output"]) {
        const { problem } = yield* Effect.flip(coreReport.prepare({ ...proposal, [field]: "x" }))
        assert.include(problem, `there is no ${field}`)
      }
    })
  )
})
