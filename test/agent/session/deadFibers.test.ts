/** A part of a session that dies ends the epoch with a line in the log, so that choird starts the agent again; without it the agent would be mute. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Logger } from "effect"
import type { Compactor } from "#src/agent/memory/Compactor.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

/** Edge starts a job at "go", whose call does not end in the first life. */
const script: Script = (messages) => {
  if (isCore(messages))
    return Effect.succeed(messages.at(-1)?.role === "tool" ? says("worked") : calls(["job.work", {}]))
  return Effect.succeed(
    messages.at(-1)?.content === "go"
      ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }])
      : says("fine")
  )
}

describe("a part of a session that dies", () => {
  it.effect("ends the epoch, its jobs and edge, says so in the log, and the next epoch continues", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const lines: Array<string> = []
      const logger = Logger.make(({ cause, message }) => {
        lines.push(`${String(message)}: ${String(Cause.squash(cause))}`)
      })
      let isDone = false
      const working = new Set<string>()
      const work = testTool(
        "job.work",
        ({ call_id }) =>
          isDone
            ? Effect.succeed({ status: "success", summary: "worked" })
            : Effect.acquireUseRelease(
                Effect.sync(() => working.add(call_id)),
                () => Effect.never,
                () => Effect.sync(() => working.delete(call_id))
              ),
        { effect: "none" }
      )
      // What compacts dies once the job works, as a defect in any loop of the session would.
      const dying: Compactor["Service"] = {
        request: () => Effect.void,
        before: () => Effect.void,
        shortening: () => ({ now: Effect.void, later: Effect.void }),
        run: () =>
          Effect.andThen(
            plane.until(() => working.size === 1),
            Effect.die("planted")
          )
      }
      yield* plane.say("go")
      const ended = yield* runAgent({ plane, script, tools: [work], compactor: dying }).pipe(
        Effect.provide(Logger.layer([logger])),
        Effect.forkScoped,
        Effect.flatMap(Fiber.await)
      )
      assert.isTrue(Exit.hasDies(ended))
      assert.include(lines, "the compaction of windows died: planted")
      assert.strictEqual(working.size, 0)

      isDone = true
      yield* Effect.forkScoped(runAgent({ plane, epoch: 2, script, tools: [work] }))
      yield* plane.say("still there?")
      yield* plane.until((events, state) => spoken(events).length >= 2 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "CoreStopped").map(({ payload }) => payload.outcome),
        ["completed"]
      )
    }).pipe(Effect.scoped)
  )
})
