/** Invariant 1: a core job lives within edge's session, in the log and in the process. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

/** Edge starts a job at the first message and is done; the job's only call never ends by itself. */
const script: Script = (messages) =>
  Effect.succeed(
    isCore(messages)
      ? calls(["slow.wait", {}])
      : messages.at(-1)?.content === "go"
        ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }])
        : says("started")
  )

/** The tokens of the three model calls until the job waits: the next call of any lane finds the session's limit reached. */
const SPENT_TOKENS = 3 * 15

/** A session whose job is in the middle of a call, and who is alive in it. */
const midway = Effect.gen(function* () {
  const plane = yield* makeMemoryControlPlane
  const alive = new Set<string>()
  const wait = testTool("slow.wait", ({ call_id }) =>
    Effect.acquireUseRelease(
      Effect.sync(() => alive.add(call_id)),
      () => Effect.never,
      // A job takes its time to let go, and edge has to wait for it.
      () =>
        Effect.delay(
          Effect.sync(() => alive.delete(call_id)),
          "200 millis"
        )
    )
  )
  const config = agentConfig({ total_session_tokens: SPENT_TOKENS })
  const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [wait], config }))
  yield* plane.say("go")
  yield* plane.until((events) => alive.size === 1 && ofType(events, "AgentMessage").length === 1)
  return { plane, alive, agent }
})

const stateAfter = (events: ReadonlyArray<ChoirEvent>): SessionState => Result.getOrThrow(foldAll(initialState, events))

export const coreWithinEdge = Effect.gen(function* () {
  yield* ticking
  const crashed = yield* midway
  yield* Fiber.interrupt(crashed.agent)
  assert.strictEqual(crashed.alive.size, 0, "a job's call outlived the edge session that was interrupted")

  const stopped = yield* midway
  yield* stopped.plane.push({ type: "Stop", deadline_ms: 20_000 })
  assert.strictEqual(yield* Fiber.join(stopped.agent), "stopped")
  assert.strictEqual(stopped.alive.size, 0, "a job's call outlived the edge session that was stopped")
  assert.strictEqual(stopped.plane.state().cores.size, 0, "a job outlived the stop of edge")

  const spent = yield* midway
  yield* spent.plane.say("more")
  // An end that the log refuses, since jobs run, is a defect of the agent.
  const parting = yield* Effect.exit(Fiber.join(spent.agent))
  assert.deepStrictEqual(parting, Exit.succeed("budget" as const), "edge did not end after its jobs")
  const { edge, cores } = spent.plane.state()
  assert.deepStrictEqual(
    [edge.state, cores.size, spent.alive.size],
    ["EDGE_TERMINATED", 0, 0],
    "edge did not end after its jobs"
  )
  assert.deepStrictEqual(
    spent.plane.events
      .filter(({ event_type }) => event_type === "CoreStopped" || event_type === "Cancelled")
      .map(({ lane }) => lane),
    ["core:work", "edge"]
  )

  // Neither agent nor choird takes a log in which a job lives without edge.
  const log = crashed.plane.events
  const [started] = ofType(log, "CoreStarted")
  assert.ok(started)
  const before = stateAfter(log.filter(({ rev }) => rev <= started.rev))
  const end = { v: 1, lane: EDGE, created_at: "", event_type: "Cancelled" } as const
  const cancelled = (rev: number): ChoirEvent => ({ ...end, rev, payload: { target: EDGE, by: "budget", reason: "" } })
  assert.isTrue(
    Result.isFailure(fold(before, cancelled(started.rev + 1))),
    "the fold took an end of edge while a job runs"
  )
  const ended = stateAfter([cancelled(1)])
  assert.isTrue(
    Result.isFailure(fold(ended, { ...started, rev: 2 })),
    "the fold took a job that starts after edge ended"
  )
})
