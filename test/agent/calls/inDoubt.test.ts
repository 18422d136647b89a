/** A call that a crash cut off is settled by its tool, which is given the call as the model made it. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { EDGE } from "#schema/Ids.ts"
import type { CutCall, Tool } from "#src/agent/tools/Tool.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, says } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

describe("a call in doubt", () => {
  it.effect("ends as its tool finds out, with the input and the id of the call", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const began = yield* Deferred.make<void>()
      const cut: Array<CutCall> = []
      const keep: Tool = {
        ...testTool("test.keep", () => Effect.andThen(Deferred.succeed(began, undefined), Effect.never), {
          effect: "external"
        }),
        settle: (call) =>
          Effect.sync(() => {
            cut.push(call)
            return { status: "success", summary: "kept" }
          })
      }
      const input = { fact: "Ada lives in Lyon" }
      yield* plane.say("go")
      const first = yield* Effect.forkScoped(
        runAgent({ plane, script: inOrder(calls(["test.keep", input])), tools: [keep] })
      )
      yield* Deferred.await(began)
      yield* Fiber.interrupt(first)
      yield* Effect.forkScoped(runAgent({ plane, epoch: 2, script: inOrder(says("it is kept")), tools: [keep] }))
      yield* plane.until((_, state) => quiet(state) && state.rev > 5)
      const [result] = ofType(plane.events, "ToolResultCommitted")
      assert.deepInclude(result?.payload, { status: "success", summary: "kept" })
      assert.deepStrictEqual<unknown>(cut, [{ lane: EDGE, call_id: result?.payload.call_id, input }])
    }).pipe(Effect.scoped)
  )
})
