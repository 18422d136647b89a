/** What the log says of a file that edge reads while a job may be writing it (D26, R17). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { EDGE } from "#schema/Ids.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

const WROTE = { status: "success", summary: "wrote" } as const
const READ = { status: "success", summary: "read the notes" } as const

/** What the commit and the result of edge's read say, with a job's write of the workspace beside it that begins before or during the read. */
const readBeside = Effect.fnUntraced(function* (begins: "before" | "during" | "never") {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const [mayWrite, writes, reads, mayEnd] = [
    Deferred.makeUnsafe<void>(),
    Deferred.makeUnsafe<void>(),
    Deferred.makeUnsafe<void>(),
    Deferred.makeUnsafe<void>()
  ]
  const write = testTool(
    "test.write",
    () => Effect.as(Effect.andThen(Deferred.succeed(writes, undefined), Deferred.await(mayEnd)), WROTE),
    { locks: [{ resource: "workspace", mode: "X" }] }
  )
  const read = testTool(
    "test.read",
    () =>
      Effect.gen(function* () {
        yield* Deferred.succeed(reads, undefined)
        if (begins !== "never") yield* Deferred.await(writes)
        return READ
      }),
    { effect: "none", locks: [{ resource: "file:./notes.txt", mode: "S" }] }
  )
  const script: Script = (messages) => {
    const last = messages.at(-1)
    if (isCore(messages))
      return Effect.as(Deferred.await(mayWrite), last?.role === "tool" ? says("done") : calls(["test.write", {}]))
    if (last?.role === "user" && last.content === "go")
      return Effect.succeed(calls(["choir.core.spawn", { job_name: "writer", task_spec: "write" }]))
    if (last?.role === "user" && last.content === "read") return Effect.succeed(calls(["test.read", {}]))
    return Effect.succeed(says("fine"))
  }
  yield* Effect.forkScoped(runAgent({ plane, script, tools: [write, read] }))
  yield* plane.say("go")
  yield* plane.until((events, { edge }) => ofType(events, "CoreStarted").length === 1 && edge.state === "EDGE_IDLE")
  if (begins === "before") yield* Effect.andThen(Deferred.succeed(mayWrite, undefined), Deferred.await(writes))
  yield* plane.say("read")
  if (begins === "during") yield* Effect.andThen(Deferred.await(reads), Deferred.succeed(mayWrite, undefined))
  const results = (events: typeof plane.events) =>
    ofType(events, "ToolResultCommitted").filter(({ payload }) => payload.summary === READ.summary)
  yield* plane.until((events) => results(events).length === 1)
  for (const held of [mayWrite, mayEnd]) yield* Deferred.succeed(held, undefined)
  yield* plane.until((_, state) => quiet(state))
  const [result] = results(plane.events)
  const committed = ofType(plane.events, "ToolCallCommitted").find(
    ({ lane, payload }) => lane === EDGE && payload.call_id === result?.payload.call_id
  )
  return { committed: committed?.payload.dirty ?? false, result: result?.payload.dirty ?? false }
})

describe("a file that edge reads", () => {
  it.effect("is dirty from its commit on while a job holds the workspace", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readBeside("before"), { committed: true, result: true })
    })
  )

  it.effect("is dirty in its result alone when the job begins to write during the read", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readBeside("during"), { committed: false, result: true })
    })
  )

  it.effect("is clean while no job writes", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readBeside("never"), { committed: false, result: false })
    })
  )
})
