/** Invariant 1: a core job lives within edge's session, in the log and in the process. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, References, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { HeartbeatReply } from "#schema/AgentApi.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Denied } from "#src/agent/control/verbAnswer.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
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

/** How a session can break off while its agent runs. */
type BrokenOff = "FENCED" | "CONFLICT" | "denied"

/** A plane that answers heartbeats so from the moment on that it is told to; `heard` is called with the first such answer. */
const breakable = (plane: MemoryControlPlane, heard: () => void) => {
  let answer: BrokenOff | undefined
  const layer: MemoryControlPlane["layer"] = (epoch) =>
    Layer.effect(
      ControlPlane,
      Effect.map(ControlPlane, (inner) =>
        ControlPlane.of({
          ...inner,
          heartbeat: (request) =>
            Effect.suspend((): Effect.Effect<HeartbeatReply, Denied> | ReturnType<typeof inner.heartbeat> => {
              if (answer === undefined) return inner.heartbeat(request)
              heard()
              if (answer === "denied")
                return Effect.fail(new Denied({ verb: "HEARTBEAT", type: "UNAUTHENTICATED", reason: "no such token" }))
              return Effect.succeed({ ack_rev: 0, config_version_latest: 1, action: answer })
            })
        })
      )
    ).pipe(Layer.provide(plane.layer(epoch)))
  return { plane: { ...plane, layer }, breakOff: (how: BrokenOff) => (answer = how) }
}

/** Edge is in a call that never ends by itself beside its job, which is in another one or makes one after the other. */
const beside =
  (isBusy: boolean): Script =>
  (messages) =>
    Effect.gen(function* () {
      if (isCore(messages)) {
        if (isBusy) yield* Effect.sleep("100 millis")
        return calls(["job.work", { step: messages.length }])
      }
      return messages.at(-1)?.content === "go"
        ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }])
        : calls(["edge.look", {}])
    })

/** A call of each lane that takes this long to let go, and the order in which the fibers of the lanes end. */
const together = Effect.fnUntraced(function* (
  slow: { readonly edgeMs: number; readonly jobMs: number },
  total_session_tokens: number
) {
  const begun = { edge: 0, job: 0 }
  let atBreak: number | undefined
  const { breakOff, plane } = breakable(yield* makeMemoryControlPlane, () => (atBreak ??= begun.job))
  const isBusy = slow.jobMs === 0
  const ended: Array<unknown> = []
  const logger = Logger.make(({ fiber, message }) => {
    if (String(message) === "the lane has ended") ended.push(fiber.getRef(References.CurrentLogAnnotations)["lane"])
  })
  const letGo = (ms: number) => Effect.onInterrupt(Effect.never, () => Effect.sleep(ms))
  const look = testTool(
    "edge.look",
    () =>
      Effect.suspend(() => {
        begun.edge += 1
        return letGo(slow.edgeMs)
      }),
    { effect: "none" }
  )
  const work = testTool("job.work", () =>
    Effect.suspend(() => {
      begun.job += 1
      return isBusy ? Effect.succeed({ status: "success", summary: "done" } as const) : letGo(slow.jobMs)
    })
  )
  const script: Script = (...asked) => {
    if (isCore(asked[0])) begun.job += 1
    return beside(isBusy)(...asked)
  }
  const config = agentConfig({ total_session_tokens })
  const agent = yield* runAgent({ plane, script, tools: [look, work], config }).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Debug"),
    Effect.forkScoped
  )
  yield* plane.say("go")
  yield* plane.until(() => begun.edge === 1 && begun.job >= (isBusy ? 4 : 2))
  return { agent, begun: () => begun.job, breakOff, ended, atBreak: () => atBreak, plane }
})

const ENDS = ["FENCED", "CONFLICT", "denied", "crash", "stop", "budget"] as const

/** Edge's fiber is the last one, whoever is slow; and a job of a session that broke off begins nothing while the fibers end. */
const endsInOrder = Effect.fnUntraced(function* (how: (typeof ENDS)[number], slow: { edgeMs: number; jobMs: number }) {
  const { agent, atBreak, begun, breakOff, ended, plane } = yield* together(slow, how === "budget" ? 300 : 1_000_000)
  if (how === "stop") yield* plane.push({ type: "Stop", deadline_ms: 20_000 })
  else if (how === "crash") yield* Fiber.interrupt(agent)
  else if (how !== "budget") breakOff(how)
  yield* Fiber.await(agent)
  assert.isAtMost(begun() - (atBreak() ?? begun()), 1, `a job went on after its session broke off (${how})`)
  assert.deepStrictEqual(ended, ["core:work", EDGE], `edge's fiber ended before its job's (${how})`)
})

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

  for (const how of ENDS) {
    if (how !== "budget") yield* endsInOrder(how, { edgeMs: 0, jobMs: 1000 })
    yield* endsInOrder(how, { edgeMs: 1500, jobMs: 0 })
  }

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
