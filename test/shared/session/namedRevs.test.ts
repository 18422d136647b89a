import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { namedRevs } from "#src/shared/session/namedRevs.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

describe("the revisions that a state names", () => {
  it.effect("hold what a running job said last, so that a trimmed log still has it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const hold = testTool("test.hold", () => Effect.never, { effect: "none" })
      const report = { kind: "progress", text: "half of it" }
      const script: Script = (messages) => {
        const last = messages.at(-1)
        if (isCore(messages))
          return Effect.succeed(last?.role === "tool" ? calls(["test.hold", {}]) : calls(["choir.core.report", report]))
        return Effect.succeed(
          last?.content === "go" ? calls(["choir.core.spawn", { job_name: "long", task_spec: "work" }]) : says("ok")
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [hold] }))
      yield* plane.say("go")
      yield* plane.until(
        (events) => ofType(events, "ToolCallCommitted").filter(({ lane }) => lane === "core:long").length > 0
      )
      const said = ofType(plane.events, "ToolCallRequested").find(({ payload }) => payload.tool === "choir.core.report")
      assert.strictEqual([...plane.state().cores.values()][0]?.report_rev, said?.rev)
      assert.include(namedRevs(plane.state()), said?.rev)
    })
  )
})
