/** Compactions that something happens beside: a further order, the end of the job. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { coreLane, JobName, SignalId } from "#schema/Ids.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCompaction, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const JOB = JobName.make("eye")
const SPAWN = ["choir.core.spawn", { job_name: JOB, task_spec: "look around" }] as const

/** An agent whose compactions wait until they are let go. Its job looks around until a compaction begins, and every job then waits. */
const start = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const [asked, letGo] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const summary = calls(["choir.memory.delta", { mode: "append", summary_update: "Looked." }])
  const compacting = Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(letGo))
  let looks = 0
  const script: Script = (messages) => {
    if (isCompaction(messages)) return Effect.as(compacting, summary)
    if (isCore(messages))
      return Effect.map(Deferred.isDone(asked), (waits) =>
        waits ? calls(["test.wait", {}]) : calls(["test.look", { looks: ++looks }])
      )
    return Effect.succeed(messages.at(-1)?.content === "go" ? calls(SPAWN) : says("fine"))
  }
  const tools = [
    testTool("test.look", () =>
      Effect.as(Effect.sleep("10 millis"), { status: "success", summary: `looked${" and so on".repeat(12)}` })
    ),
    testTool("test.wait", () => Effect.never)
  ]
  const config = { ...agentConfig(), memory: { ...agentConfig().memory, event_window: 4, window_tokens_max: 150 } }
  yield* Effect.forkScoped(runAgent({ plane, script, tools, config }))
  return { plane, asked: Deferred.await(asked), letGo: Deferred.succeed(letGo, undefined) }
})

describe("a compaction", () => {
  it.effect("is followed by one that was ordered while it ran", () =>
    Effect.gen(function* () {
      const { asked, letGo, plane } = yield* start
      yield* plane.say("hello")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      const [first, second, third] = [SignalId.make("1"), SignalId.make("2"), SignalId.make("3")]
      yield* plane.push({ type: "Compact", signal_id: first })
      yield* asked
      yield* plane.push({ type: "Compact", signal_id: second })
      // Signals are obeyed in their order: once this one has its end, the second order waits for the first, and the compactor sleeps.
      yield* plane.push({ type: "CancelCore", signal_id: third, job_name: JOB })
      yield* plane.until((_, { signals }) => signals.includes(third))
      assert.notInclude(plane.state().signals, first)
      yield* letGo
      yield* plane.until((_, { signals }) => signals.includes(first) && signals.includes(second))
    })
  )

  it.effect("of a job that ended is not taken for the memory of another job with its name", () =>
    Effect.gen(function* () {
      const { asked, letGo, plane } = yield* start
      yield* plane.say("go")
      yield* asked
      yield* plane.push({ type: "CancelCore", signal_id: SignalId.make("1"), job_name: JOB })
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      yield* plane.say("go")
      yield* plane.until((events) => ofType(events, "CoreStarted").length === 2)
      yield* letGo
      yield* Effect.sleep("1 second")
      const lanes = ofType(plane.events, "CompactionCommitted").map(({ lane }) => lane)
      assert.notInclude(lanes, coreLane(JOB))
      assert.strictEqual(plane.state().cores.get(JOB)?.summary.summary, "")
    })
  )
})
