/** Invariant 5: lanes move by tables that are data, jobs start no jobs, and each turn and job has a bound on its steps. */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { CORE_TRANSITIONS, EDGE_TRANSITIONS } from "#schema/Lane.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

/** The single steps of docs/protocol.md, Lanes, written down here a second time. */
const EDGE_LEGAL = [
  "IDLE CONTEXT_READY",
  "CONTEXT_READY REASONING",
  "CONTEXT_READY FINALIZING",
  "REASONING FINALIZING",
  "REASONING WAITING_TOOL",
  "WAITING_TOOL REASONING",
  "FINALIZING IDLE",
  // Words that were missing or cut off are asked for once more.
  "FINALIZING REASONING"
]
const CORE_LEGAL = [
  "CREATED INITIALIZING",
  "INITIALIZING REASONING",
  "REASONING COMPLETED",
  "REASONING WAITING_TOOL",
  "REASONING REASONING",
  "WAITING_TOOL REASONING"
]

type Table = Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>>

/** The single steps that a table allows beside those into TERMINATED, which are legal from anywhere. */
const steps = (table: Table, kind: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [from, moves] of Object.entries(table))
    for (const path of Object.values(moves)) {
      const states = [from, ...path].map((state) => state.slice(kind.length + 1))
      for (const [index, to] of states.slice(1).entries()) if (to !== "TERMINATED") found.add(`${states[index]} ${to}`)
    }
  return [...found].sort()
}

const TURN_STEPS_MAX = 4
const CALLS_WANTED = 3 * TURN_STEPS_MAX

/** The job tries to start another one; edge would go on for longer than a turn may. */
const script: Script = (messages) => {
  const asked = messages.findLastIndex(({ role }) => role === "user")
  const results = messages.slice(asked).filter(({ role }) => role === "tool").length
  if (isCore(messages))
    return Effect.succeed(
      results === 0 ? calls(["choir.core.spawn", { job_name: "inner", task_spec: "nest" }]) : says("done")
    )
  const text = messages[asked]?.content
  if (text === "nest")
    return Effect.succeed(
      results === 0 ? calls(["choir.core.spawn", { job_name: "outer", task_spec: "nest" }]) : says("started")
    )
  return Effect.succeed(
    text === "loop" && results < CALLS_WANTED ? calls(["mem.read", { step: results }]) : says("done")
  )
}

export const explicitTransitions = Effect.gen(function* () {
  assert.deepStrictEqual(
    steps(EDGE_TRANSITIONS as Table, "EDGE"),
    EDGE_LEGAL.toSorted(),
    "edge's table is not the expected one"
  )
  assert.deepStrictEqual(
    steps(CORE_TRANSITIONS as Table, "CORE"),
    CORE_LEGAL.toSorted(),
    "a job's table is not the expected one"
  )

  yield* ticking
  const plane = yield* makeMemoryControlPlane
  let reads = 0
  const read = testTool("mem.read", () => Effect.sync(() => ({ status: "success", summary: `${reads++}` }) as const), {
    besideJobs: true
  })
  const config = agentConfig({ turn_max_steps: TURN_STEPS_MAX })
  yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
  yield* plane.say("nest")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  const [started, ...nested] = ofType(plane.events, "CoreStarted")
  assert.ok(started)
  assert.deepStrictEqual(nested, [], "a job started a job")

  yield* plane.say("loop")
  yield* plane.until((events, state) => ofType(events, "UserMsg").length === 2 && quiet(state))
  assert.strictEqual(reads, TURN_STEPS_MAX, "a turn went on for longer than turn_max_steps")
  assert.include(ofType(plane.events, "AgentMessage").at(-1)?.payload.text, "turn_max_steps")

  // A job that said nothing yet cannot have completed: no entry of the table leads there.
  const before = Result.getOrThrow(foldAll(initialState, plane.events.slice(0, started.rev)))
  const { job_id, job_name } = started.payload
  const usage = { input_tokens: 0, output_tokens: 0 }
  const completed: ChoirEvent = {
    ...started,
    rev: started.rev + 1,
    event_type: "CoreStopped",
    payload: { job_id, job_name, outcome: "completed", summary: "", usage }
  }
  const folded = fold(before, completed)
  assert.isTrue(Result.isFailure(folded), "the fold took a transition that the table does not list")
})
