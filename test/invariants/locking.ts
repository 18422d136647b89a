/** Invariant 2: a resource has one exclusive owner at a time, and jobs own different resources at the same time. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

/** What each tool owns while it runs. The workspace contains each of its files. */
const OWNS = {
  "own.one": "mem:one",
  "own.two": "mem:two",
  "own.file": "file:src/a.ts",
  "own.workspace": "workspace"
} as const

/** The pairs of tools that may never run at once, in alphabetical order. */
const EXCLUSIVE = new Set([...Object.keys(OWNS).map((name) => `${name} ${name}`), "own.file own.workspace"])

const ROUNDS = 4

/** Three jobs ask for everything in the same order, so that each resource is always wanted by all of them. */
const script: Script = (messages) => {
  const steps = messages.filter(({ role }) => role === "tool").length
  const everything = Object.keys(OWNS).map((name) => [name, { round: steps }] as const)
  if (isCore(messages)) return Effect.succeed(steps < ROUNDS * everything.length ? calls(...everything) : says("done"))
  const jobs = ["a", "b", "c"].map(
    (job_name) => ["choir.core.spawn", { job_name, task_spec: "own everything" }] as const
  )
  return Effect.succeed(messages.at(-1)?.content === "go" ? calls(...jobs) : says("ok"))
}

export const exclusivePerResource = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const running: Array<{ readonly name: string; readonly lane: string }> = []
  const overlaps = new Set<string>()
  let ran = 0
  const tools = Object.entries(OWNS).map(([name, resource]) =>
    testTool(
      name,
      ({ lane }) =>
        Effect.gen(function* () {
          const mine = { name, lane }
          for (const other of running) overlaps.add([name, other.name].sort().join(" "))
          running.push(mine)
          yield* Effect.sleep("50 millis")
          running.splice(running.indexOf(mine), 1)
          return { status: "success", summary: `${++ran}` } as const
        }),
      { locks: [LockRequest.make({ resource, mode: "X" })] }
    )
  )
  yield* Effect.forkScoped(runAgent({ plane, script, tools }))
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 3 && quiet(state))
  assert.strictEqual(ran, 3 * ROUNDS * tools.length)
  assert.deepStrictEqual(
    [...overlaps].filter((pair) => EXCLUSIVE.has(pair)),
    [],
    "two owners held one resource at the same time"
  )
  assert.include([...overlaps], "own.one own.two", "different resources were not owned at the same time")
})
