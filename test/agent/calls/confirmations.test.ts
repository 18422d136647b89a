/** Calls that wait for a person (D31, R55), with everything real but choird, the model and the tools. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import type { AskedApproval } from "#schema/Approval.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { ApprovalId, coreLane, JobName } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Unreachable } from "#src/agent/control/verbAnswer.ts"
import { APPROVAL_GRACE_MS } from "#src/agent/calls/Confirmations.ts"

const INPUT = { to: "ada" }
const FILES = [{ path: "plan.pdf", bytes: 12, sha256: "0".repeat(64) }]
const TIMEOUT_MS = 1_800_000

const configured = (confirm_external: AgentConfig["approvals"]["confirm_external"]): AgentConfig => ({
  ...agentConfig(),
  approvals: { timeout_ms: TIMEOUT_MS, confirm_external }
})

/** A tool that leaves a trace outside, one that works in the workspace, and one that reads what strangers wrote. */
const makeTools = (ledger: Array<string>) => [
  testTool(
    "out.send",
    ({ call_id }) => Effect.sync(() => (ledger.push(call_id), { status: "success", summary: "sent" })),
    {
      effect: "external",
      timeout_ms: 1000,
      locks: [LockRequest.make({ resource: "workspace", mode: "X" })]
    }
  ),
  testTool(
    "out.attach",
    ({ call_id }) => Effect.sync(() => (ledger.push(call_id), { status: "success", summary: "sent" })),
    { effect: "external", files: Effect.succeed({ files: FILES }) }
  ),
  testTool(
    "own.keep",
    ({ call_id }) => Effect.sync(() => (ledger.push(call_id), { status: "success", summary: "kept" })),
    { effect: "external", keepsOwn: true }
  ),
  testTool("ws.write", () => Effect.succeed({ status: "success", summary: "written" }), {
    locks: [LockRequest.make({ resource: "workspace", mode: "X" })]
  }),
  testTool("web.read", () => Effect.succeed({ status: "success", summary: "read", sources: ["web:evil.example"] }), {
    effect: "none"
  })
]

/** What happens before the agent gets choird's answer to a request. */
interface Before {
  readonly approval?: (answer: AskedApproval, plane: MemoryControlPlane) => Effect.Effect<void, Unreachable>
  readonly heartbeat?: Effect.Effect<void>
}

const slowedDown = (plane: MemoryControlPlane, before: Before): MemoryControlPlane => ({
  ...plane,
  layer: (epoch) =>
    Layer.effect(
      ControlPlane,
      Effect.map(ControlPlane, (inner) =>
        ControlPlane.of({
          ...inner,
          approval: (request) =>
            Effect.tap(inner.approval(request), (answer) => before.approval?.(answer, plane) ?? Effect.void),
          heartbeat: (request) => Effect.andThen(before.heartbeat ?? Effect.void, inner.heartbeat(request))
        })
      )
    ).pipe(Layer.provide(plane.layer(epoch)))
})

const start = Effect.fnUntraced(function* (
  script: Script,
  confirm: AgentConfig["approvals"]["confirm_external"] = "always",
  before: Before = {}
) {
  yield* ticking
  const plane = slowedDown(yield* makeMemoryControlPlane, before)
  const ledger: Array<string> = []
  yield* plane.say("go")
  const live = (epoch: number) =>
    Effect.forkScoped(runAgent({ plane, script, tools: makeTools(ledger), epoch, config: configured(confirm) }))
  return { plane, ledger, live, agent: yield* live(1) }
})

/** The first request of each call has arrived. */
const asked = (plane: MemoryControlPlane, count = 1) =>
  Effect.andThen(
    plane.until(
      (events) => ofType(events, "ToolCallRequested").filter(({ payload }) => payload.confirm).length >= count
    ),
    Effect.repeat(Effect.yieldNow, { until: () => plane.approvals.length >= count })
  )

const ended = (plane: MemoryControlPlane) => plane.until((events, state) => events.length > 0 && quiet(state))
const results = (plane: MemoryControlPlane) => ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
const first = ApprovalId.make("1")

describe("a call that needs a person", () => {
  it.effect("runs once after the approval, which its commit names (D31)", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      const { call, call_id } = plane.approvals[0]!
      assert.deepStrictEqual(call, { tool: "out.send", input: INPUT, lane: "edge", why: "always" } as never)
      assert.deepStrictEqual([ledger.length, plane.state().edge.state], [0, "EDGE_WAITING_TOOL"])
      yield* plane.decide(first, "approved")
      yield* ended(plane)
      assert.deepStrictEqual(ledger, [call_id])
      assert.strictEqual(ofType(plane.events, "ToolCallCommitted")[0]?.payload.approval_id, first)
      // Once to ask, and once when it was told: that request acknowledges the signal.
      assert.strictEqual(plane.approvals[0]?.requests, 2)
    })
  )

  it.effect("is shown with the files that it hands out", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.attach", INPUT]), says("done")))
      yield* asked(plane)
      assert.deepStrictEqual(plane.approvals[0]?.call.files, FILES)
      yield* plane.decide(first, "approved")
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("holds no lock while it waits, and its own timeout does not run", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT], ["ws.write", {}]), says("done")))
      yield* asked(plane)
      yield* plane.until((events) => ofType(events, "ToolResultCommitted").length === 1)
      assert.strictEqual(results(plane)[0]?.summary, "written")
      yield* Effect.sleep("20 minutes")
      assert.deepStrictEqual(ledger, [])
      yield* plane.decide(first, "approved")
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
    })
  )

  for (const [status, words] of [
    ["rejected", /a person refused/u],
    ["expired", /nobody approved this call in time/u]
  ] as const)
    it.effect(`does not run when it is ${status}, and the model is told`, () =>
      Effect.gen(function* () {
        const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
        yield* asked(plane)
        yield* plane.decide(first, status)
        yield* ended(plane)
        assert.deepStrictEqual(ledger, [])
        assert.strictEqual(results(plane)[0]?.status, "rejected")
        assert.match(results(plane)[0]?.summary ?? "", words)
      })
    )

  it.effect("tells the model the reason that a person gave", () =>
    Effect.gen(function* () {
      const { plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      yield* plane.decide(first, "rejected", 'not now,\n"please"')
      yield* ended(plane)
      assert.include(
        results(plane)[0]?.summary,
        String.raw`a person refused this call and said "not now,\n\"please\""; do`
      )
    })
  )

  it.effect("is asked for only once the lane has read what strangers wrote, when so configured (D31)", () =>
    Effect.gen(function* () {
      const script = inOrder(
        calls(["out.send", INPUT]),
        calls(["web.read", {}]),
        calls(["out.send", INPUT]),
        says("done")
      )
      const { ledger, plane } = yield* start(script, "tainted")
      yield* asked(plane)
      assert.lengthOf(ledger, 1)
      assert.strictEqual(plane.approvals[0]?.call.why, "tainted")
      yield* plane.decide(first, "approved")
      yield* ended(plane)
      assert.lengthOf(ledger, 2)
    })
  )

  it.effect("never only changes what the agent itself remembers, whatever the lane has read", () =>
    Effect.gen(function* () {
      for (const confirm of ["tainted", "always"] as const) {
        const script = inOrder(calls(["web.read", {}]), calls(["own.keep", INPUT]), says("done"))
        const { ledger, plane } = yield* start(script, confirm)
        yield* ended(plane)
        assert.lengthOf(ledger, 1)
        assert.deepStrictEqual([plane.approvals.length, plane.state().edge.tainted], [0, true])
      }
    })
  )

  it.effect("is told of the decision by choird's answer when the signal is lost", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      // As if the push had never arrived.
      plane.approvals[0]!.status = "approved"
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("asks again at once when the decision arrives before choird's answer that the call has to wait", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")), "always", {
        approval: (answer, plane) =>
          answer.status === "pending"
            ? Effect.andThen(plane.decide(answer.approval_id, "approved"), Effect.sleep("1 second"))
            : Effect.void
      })
      yield* asked(plane)
      const asked_ms = yield* Clock.currentTimeMillis
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
      assert.isBelow((yield* Clock.currentTimeMillis) - asked_ms, 5000)
    })
  )

  it.effect("does not run after its approval until choird has the event that commits it (D3)", () =>
    Effect.gen(function* () {
      let stalled = false
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")), "always", {
        approval: ({ status }) => Effect.sync(() => void (stalled = status === "approved")),
        heartbeat: Effect.suspend(() => (stalled ? Effect.never : Effect.void))
      })
      yield* asked(plane)
      yield* plane.decide(first, "approved")
      yield* Effect.sleep("1 minute")
      assert.isTrue(stalled)
      assert.deepStrictEqual(ledger, [])
    })
  )

  it.effect("waits on while choird is away", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      yield* plane.away(Effect.andThen(plane.decide(first, "approved"), Effect.sleep("1 minute")))
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("asks again no sooner than choird allows (R47)", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const busy = new Unreachable({ verb: "REQUEST_APPROVAL", reason: "too many requests", retry_after_ms: 5000 })
      const approval = () =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => (times.push(now) === 1 ? Effect.fail(busy) : Effect.void))
      const script = inOrder(calls(["out.send", INPUT]), says("done"))
      const { ledger, plane } = yield* start(script, "always", { approval })
      yield* Effect.repeat(Effect.yieldNow, { until: () => times.length === 2 })
      assert.isAtLeast((times[1] ?? 0) - (times[0] ?? 0), 5000)
      yield* plane.decide(first, "approved")
      yield* ended(plane)
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("gives up when not even choird says that the time is over (E12)", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      yield* Effect.sleep(TIMEOUT_MS + APPROVAL_GRACE_MS + 1000)
      yield* ended(plane)
      assert.deepStrictEqual(ledger, [])
      assert.strictEqual(results(plane)[0]?.status, "rejected")
    })
  )

  it.effect("survives the agent: approved meanwhile, it runs once in the next epoch (D17)", () =>
    Effect.gen(function* () {
      const { agent, ledger, live, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("done")))
      yield* asked(plane)
      yield* Fiber.interrupt(agent)
      yield* plane.decide(first, "approved")
      yield* live(2)
      yield* ended(plane)
      assert.lengthOf(plane.approvals, 1)
      assert.deepStrictEqual<unknown>(ledger, [plane.approvals[0]?.call_id])
    })
  )

  it.effect("ends with a stop, and was not run", () =>
    Effect.gen(function* () {
      // What it says last is the session's summary.
      const { ledger, plane } = yield* start(inOrder(calls(["out.send", INPUT]), says("a summary")))
      yield* asked(plane)
      yield* plane.push({ type: "Stop", deadline_ms: 20_000 })
      assert.strictEqual(yield* Deferred.await(plane.terminated), "stopped")
      assert.deepStrictEqual([ledger.length, results(plane)[0]?.status], [0, "cancelled"])
    })
  )

  it.effect("ends with the cancel of its job", () =>
    Effect.gen(function* () {
      const spawn = ["choir.core.spawn", { job_name: "mail", task_spec: "send it" }] as const
      const edge = inOrder(calls(spawn), says("started"), says("it was cancelled"))
      const { ledger, plane } = yield* start((messages, tools) =>
        isCore(messages) ? Effect.succeed(calls(["out.send", INPUT])) : edge(messages, tools)
      )
      yield* asked(plane)
      assert.strictEqual(plane.approvals[0]?.call.lane, coreLane(JobName.make("mail")))
      yield* plane.push({ type: "CancelCore", signal_id: "9" as never, job_name: JobName.make("mail") })
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.deepStrictEqual(ledger, [])
      const closed = results(plane).find(({ call_id }) => call_id === plane.approvals[0]?.call_id)
      assert.strictEqual(closed?.status, "cancelled")
    })
  )

  it.effect("goes on by itself where no confirmation is configured", () =>
    Effect.gen(function* () {
      const { ledger, plane } = yield* start(
        inOrder(calls(["web.read", {}], ["out.send", INPUT]), says("done")),
        "never"
      )
      yield* ended(plane)
      assert.deepStrictEqual([ledger.length, plane.approvals.length], [1, 0])
      assert.notProperty(ofType(plane.events, "ToolCallCommitted")[0]?.payload, "approval_id")
    })
  )
})
