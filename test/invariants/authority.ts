/** Invariant 9: a model's proposals are checked and committed before anything happens; what is refused has no effect. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

const CALLS_MAX = 8

/** The job may only read. Edge is asked to write while the job runs, and to go on after the session's calls are used up. */
const script: Script = (messages) => {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user"))
  const results = turn.filter(({ role }) => role === "tool").length
  if (isCore(messages))
    return Effect.succeed(
      results === 0 ? calls(["fs.write", { from: "job" }], ["mem.read", { until: "write" }]) : says("done")
    )
  if (results > 0) return Effect.succeed(says("ok"))
  switch (turn[0]?.content) {
    case "spawn": {
      const tool_constraints = { allowed_tools: ["mem.read"], time_budget_ms: 0 }
      return Effect.succeed(calls(["choir.core.spawn", { job_name: "work", task_spec: "read", tool_constraints }]))
    }
    case "write":
      return Effect.succeed(calls(["fs.write", { from: "edge" }], ["no.tool", {}], ["out.send", {}]))
    case "much":
      return Effect.succeed(calls(...Array.from({ length: CALLS_MAX }, (_, n) => ["mem.read", { n }] as const)))
    default:
      return Effect.succeed(says("ok"))
  }
}

export const onlyCommittedEffects = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const ran: Array<string> = []
  const acknowledged: Array<boolean> = []
  const tools = [
    testTool(
      "mem.read",
      ({ call_id, lane }) =>
        Effect.gen(function* () {
          ran.push(call_id)
          if (lane !== "edge") yield* plane.until((events) => ofType(events, "AgentMessage").length >= 2)
          return { status: "success", summary: call_id } as const
        }),
      { effect: "none" }
    ),
    testTool("fs.write", ({ call_id }) =>
      Effect.sync(() => {
        ran.push(call_id)
        return { status: "success", summary: "written" } as const
      })
    ),
    testTool(
      "out.send",
      ({ call_id }) =>
        Effect.sync(() => {
          ran.push(call_id)
          acknowledged.push(
            ofType(plane.events, "ToolCallCommitted").some(({ payload }) => payload.call_id === call_id)
          )
          return { status: "success", summary: "sent" } as const
        }),
      { effect: "external", besideJobs: true }
    )
  ]
  const config = agentConfig({ max_tool_calls_per_session: CALLS_MAX })
  yield* Effect.forkScoped(runAgent({ plane, script, tools, config }))
  yield* plane.say("spawn")
  yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
  yield* plane.say("write")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  yield* plane.say("much")
  yield* plane.until(
    (events, state) => state.ended !== undefined || (ofType(events, "UserMsg").length === 3 && quiet(state))
  )

  const committed = new Set<string>(ofType(plane.events, "ToolCallCommitted").map(({ payload }) => payload.call_id))
  assert.deepStrictEqual(
    ran.filter((call_id) => !committed.has(call_id)),
    [],
    "a tool ran that the arbiter did not commit"
  )
  const statuses = new Map(
    ofType(plane.events, "ToolResultCommitted").map(({ payload }) => [payload.call_id, payload.status])
  )
  const outcomes = ofType(plane.events, "ModelOutput")
    .flatMap(({ lane, payload }) => payload.tool_calls.map((call) => ({ ...call, lane })))
    .filter(({ name }) => ["fs-write", "no-tool", "out-send"].includes(name))
    .map(({ call_id, lane, name }) => [lane, name, statuses.get(call_id), ran.includes(call_id)])
  assert.deepStrictEqual(
    outcomes,
    [
      ["core:work", "fs-write", "rejected", false],
      ["edge", "fs-write", "rejected", false],
      ["edge", "no-tool", "rejected", false],
      ["edge", "out-send", "success", true]
    ],
    "a proposal that had to be refused took effect"
  )
  assert.deepStrictEqual(acknowledged, [true], "an external effect happened before choird knew of its intent")
  assert.isAtMost(ran.length + 1, CALLS_MAX, "more calls ran than the session may make")
})
