/** Jobs that share nothing do not wait for each other (R61). Virtual time, so that only waiting counts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { LockRequest } from "#schema/Tool.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import type { Tool } from "#src/agent/tools/Tool.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool } from "../support/testing/TestAgent.ts"

const STEPS = 10
const MODEL_MS = 200
const TOOL_MS = 2

const jobOf = (messages: ReadonlyArray<Message>) => /^Job: (\S+)/u.exec(messages[1]?.content ?? "")?.[1] ?? ""

/** Each call writes the file that its input names, under that file's lock. */
const write: Tool = {
  ...testTool("ws.write", () => Effect.succeed({ status: "success", summary: "written" })),
  prepare: (input) =>
    Effect.succeed({
      locks: [LockRequest.make({ resource: `file:${(input as { path: string }).path}`, mode: "X" })],
      timeout_ms: 60_000,
      run: () => Effect.as(Effect.sleep(TOOL_MS), { status: "success", summary: "written" } as const)
    })
}

const script =
  (jobs: ReadonlyArray<string>): Script =>
  (messages) =>
    Effect.as(
      Effect.sleep(MODEL_MS),
      isCore(messages)
        ? messages.filter(({ role }) => role === "tool").length < STEPS
          ? calls(["ws.write", { path: jobOf(messages), step: messages.length }])
          : says("done")
        : messages.at(-1)?.role === "user" && messages.at(-1)?.content === "go"
          ? calls(...jobs.map((job_name) => ["choir.core.spawn", { job_name, task_spec: "write" }] as const))
          : says("ok")
    )

/** Milliseconds from the first job's start to the last one's end. */
const elapsed = Effect.fnUntraced(function* (count: number) {
  const jobs = Array.from({ length: count }, (_, index) => `job-${index}`)
  const plane = yield* makeMemoryControlPlane
  const config = agentConfig({ max_core_jobs: 32, per_job_max_steps: 100 })
  yield* Effect.forkScoped(runAgent({ plane, script: script(jobs), tools: [write], config }))
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === count && quiet(state))
  const times = (type: "CoreStarted" | "CoreStopped") =>
    ofType(plane.events, type).map(({ created_at }) => Date.parse(created_at))
  assert.isTrue(ofType(plane.events, "CoreStopped").every(({ payload }) => payload.outcome === "completed"))
  return Math.max(...times("CoreStopped")) - Math.min(...times("CoreStarted"))
})

const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(1), Effect.yieldNow)))

describe("jobs", () => {
  it.effect("on 32 distinct files do at least 25 times the work of one in its time (R61)", () =>
    Effect.gen(function* () {
      yield* ticking
      const one = yield* elapsed(1)
      const many = yield* elapsed(32)
      assert.isAtLeast((32 * one) / many, 25)
    }).pipe(Effect.scoped)
  )
})
