/** `/stop`: the turn that it names ends at once and for good, with everything real but choird, the model and the tools. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { InboxId, ResourceName, SignalId } from "#schema/Ids.ts"
import type { TurnName } from "#schema/Signal.ts"
import { LockRequest } from "#schema/Tool.ts"
import { turnToStop } from "#src/shared/session/turns.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

let signals = 0
/** A person's order, which names its turn. */
const stop = (plane: MemoryControlPlane, turn: TurnName) =>
  Effect.suspend(() => plane.push({ type: "StopTurn", signal_id: SignalId.make(String(900 + ++signals)), turn }))

const said = (plane: MemoryControlPlane) =>
  spoken(plane.events).map(({ payload }) => [payload.kind, payload.in_reply_to, payload.text])
const cancels = (plane: MemoryControlPlane) =>
  ofType(plane.events, "Cancelled").map(({ payload }) => [payload.target, payload.reason, payload.turn])
const results = (plane: MemoryControlPlane) =>
  ofType(plane.events, "ToolResultCommitted").map(({ payload }) => [payload.status, payload.summary])

const WORKSPACE = [LockRequest.make({ resource: "workspace", mode: "X" })]
const STOPPED = "the user stopped the turn"

/** A model that hangs when it is asked the first time, and says when it was asked and when it was interrupted. */
const hanging = Effect.gen(function* () {
  const asked = yield* Deferred.make<void>()
  const left = yield* Deferred.make<void>()
  let first = true
  const script: Script = () =>
    Effect.suspend(() => {
      if (!first) return Effect.succeed(says("hello again"))
      first = false
      return Deferred.succeed(asked, undefined).pipe(
        Effect.andThen(Effect.never),
        Effect.onInterrupt(() => Deferred.succeed(left, undefined))
      )
    })
  return { asked, left, script }
})

describe("an order to stop a turn", () => {
  it.effect("interrupts the model call, answers once, and the next message is answered as ever", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const { asked, left, script } = yield* hanging
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const inbox_id = yield* plane.say("think hard")
      yield* Deferred.await(asked)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      yield* Deferred.await(left)
      assert.deepStrictEqual(
        plane.events.map(({ event_type }) => event_type),
        ["UserMsg", "Cancelled", "AgentMessage"]
      )
      assert.deepStrictEqual(cancels(plane), [["edge", STOPPED, 1]])
      yield* plane.say("hello")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(plane), [
        ["reply", "1", "Stopped."],
        ["reply", "2", "hello again"]
      ])
    })
  )

  it.effect("releases what the interrupted model call had reserved", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const { asked, script } = yield* hanging
      // Room for one call at a time, so that a reservation which stays would keep the next one waiting.
      const config = agentConfig({ total_session_tokens: 40_000 })
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      const inbox_id = yield* plane.say("think hard")
      yield* Deferred.await(asked)
      yield* stop(plane, { inbox_id })
      yield* plane.say("hello")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(plane.state().spent, { tokens: 15, cost_usd: 0, tool_calls: 0 })
    })
  )

  it.effect("given in one of several DMs ends the turn that runs, and each DM gets its own answer", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const { asked, script } = yield* hanging
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const send = (id: string, dm: string) => {
        const message = { inbox_id: InboxId.make(id), dm: ResourceName.make(dm), text: dm, attachments: [] }
        return plane.push({ type: "UserMessage", ...message, created_at: "" })
      }
      yield* send("1", "phone")
      yield* Deferred.await(asked)
      yield* send("2", "desk")
      yield* plane.until((events) => ofType(events, "UserMsg").length === 1)
      // choird names the turn this way for every DM: an agent has one edge, and the message of the other DM waits for it.
      const turn = turnToStop(plane.state(), InboxId.make("2"))
      assert.deepStrictEqual(turn, { inbox_id: InboxId.make("1") })
      if (turn !== undefined) yield* stop(plane, turn)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(plane), [
        ["reply", "1", "Stopped."],
        ["reply", "2", "hello again"]
      ])
    })
  )

  it.effect("kills a running tool, commits its end before its locks are free, and starts none of the others", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const order: Array<string> = []
      const started = yield* Deferred.make<void>()
      const endless = testTool(
        "slow.wait",
        () =>
          Effect.sync(() => order.push("start")).pipe(
            Effect.andThen(Deferred.succeed(started, undefined)),
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => order.push("killed")))
          ),
        { locks: WORKSPACE, timeout_ms: 600_000 }
      )
      const quick = testTool(
        "quick.write",
        () => Effect.sync(() => (order.push("quick"), { status: "success", summary: "written" })),
        { locks: WORKSPACE }
      )
      const script = inOrder(calls(["slow.wait", {}], ["slow.wait", {}]), calls(["quick.write", {}]), says("done"))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [endless, quick] }))
      const inbox_id = yield* plane.say("go")
      yield* Deferred.await(started)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.deepStrictEqual(order, ["start", "killed"])
      assert.deepStrictEqual(results(plane), [
        ["cancelled", STOPPED],
        ["cancelled", "it was interrupted while it ran"]
      ])
      yield* plane.say("again")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(order, ["start", "killed", "quick"])
    })
  )

  it.effect("says that an external call may have taken effect, and says it once (R6)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const started = yield* Deferred.make<void>()
      const send = testTool("out.send", () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never), {
        effect: "external"
      })
      yield* Effect.forkScoped(runAgent({ plane, script: inOrder(calls(["out.send", {}])), tools: [send] }))
      const inbox_id = yield* plane.say("send it")
      yield* Deferred.await(started)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.deepStrictEqual(results(plane), [
        ["cancelled", "it was interrupted while it ran; whether it took effect is not known"]
      ])
      const notices = ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.kind === "notice")
      assert.lengthOf(notices, 1)
      assert.strictEqual(notices[0]?.payload.in_reply_to, inbox_id)
      assert.match(notices[0]?.payload.text ?? "", /out-send ran\. I do not know whether it took effect/u)
    })
  )

  it.effect("ends a wait for a person, whose approval later runs nothing", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let sent = 0
      const send = testTool("out.send", () => Effect.sync(() => (sent++, { status: "success", summary: "sent" })), {
        effect: "external"
      })
      const config = { ...agentConfig(), approvals: { timeout_ms: 60_000, confirm_external: "always" as const } }
      yield* Effect.forkScoped(runAgent({ plane, script: inOrder(calls(["out.send", {}])), tools: [send], config }))
      const inbox_id = yield* plane.say("send it")
      yield* plane.until(() => plane.approvals.length === 1)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* Effect.sleep("1 minute")
      assert.deepStrictEqual([sent, results(plane)], [0, [["cancelled", STOPPED]]])
    })
  )

  it.effect("leaves the jobs of the turn alone and names them", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const finish = yield* Deferred.make<void>()
      const asked = yield* Deferred.make<void>()
      let edge = 0
      const script: Script = (messages) => {
        if (isCore(messages)) return Effect.as(Deferred.await(finish), says("42"))
        edge++
        if (edge === 1) return Effect.succeed(calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }]))
        if (edge === 2) return Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        return Effect.succeed(says("it came to 42"))
      }
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const inbox_id = yield* plane.say("go")
      yield* Deferred.await(asked)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events) => spoken(events).length === 1)
      yield* Deferred.succeed(finish, undefined)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(plane), [
        ["reply", "1", "Stopped. The job work keeps running; /cancel work ends it."],
        ["report", "1", "it came to 42"]
      ])
    })
  )

  it.effect("ends a report turn with its one report, in the runtime's words", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const asked = yield* Deferred.make<void>()
      const script: Script = (messages) => {
        if (isCore(messages)) return Effect.succeed(says("42"))
        const last = messages.at(-1)
        if (last?.role === "user" && last.content.startsWith("<choir-note>\nReport:"))
          return Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        return Effect.succeed(
          last?.role === "user" ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }]) : says("started")
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("go")
      yield* Deferred.await(asked)
      yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
      const report_rev = ofType(plane.events, "CoreStopped")[0]?.rev ?? 0
      yield* stop(plane, { report_rev })
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(plane)[1], ["report", "1", "Stopped. The job work ended (completed): 42"])
      assert.deepStrictEqual(cancels(plane), [["edge", STOPPED, report_rev]])
    })
  )

  it.effect("that arrives late ends in an event and leaves the next turn alone", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const gate = yield* Deferred.make<void>()
      let asked = 0
      const script: Script = () =>
        Effect.suspend(() =>
          ++asked === 1 ? Effect.succeed(says("one")) : Effect.as(Deferred.await(gate), says("two"))
        )
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const inbox_id = yield* plane.say("first")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      yield* plane.say("second")
      yield* plane.until((events) => ofType(events, "UserMsg").length === 2)
      yield* stop(plane, { inbox_id })
      yield* plane.until((events) => ofType(events, "Cancelled").length === 1)
      yield* Deferred.succeed(gate, undefined)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(cancels(plane), [["edge", "no_such_turn", 0]])
      assert.deepStrictEqual(said(plane)[1], ["reply", "2", "two"])
    })
  )

  it.effect("that names a message which waits ends its turn as it begins, and not the one before", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const gate = yield* Deferred.make<void>()
      let asked = 0
      const script: Script = () =>
        Effect.as(
          Effect.andThen(
            Effect.sync(() => asked++),
            Deferred.await(gate)
          ),
          says("one")
        )
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("first")
      yield* plane.until((events) => ofType(events, "UserMsg").length === 1)
      const waits = yield* plane.say("second")
      yield* stop(plane, { inbox_id: waits })
      // The turn before goes on for as long as it likes.
      yield* Effect.sleep("1 minute")
      yield* Deferred.succeed(gate, undefined)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(plane), [
        ["reply", "1", "one"],
        ["reply", "2", "Stopped."]
      ])
      assert.strictEqual(asked, 1)
    })
  )

  it.effect("given twice ends in two events and one reply", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const { asked, script } = yield* hanging
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const inbox_id = yield* plane.say("think hard")
      yield* Deferred.await(asked)
      yield* Effect.all([stop(plane, { inbox_id }), stop(plane, { inbox_id })])
      yield* plane.until((events) => ofType(events, "Cancelled").length === 2)
      assert.deepStrictEqual(cancels(plane), [
        ["edge", STOPPED, 1],
        ["edge", "no_such_turn", 0]
      ])
      assert.deepStrictEqual(said(plane), [["reply", "1", "Stopped."]])
    })
  )

  const FLAWED = [
    ["an empty reply", { text: "" }],
    ["a reply that was cut", { text: "The first half, ", finish_reason: "length" }]
  ] as const
  for (const [what, flawed] of FLAWED) {
    it.effect(`ends a turn while ${what} is asked for again`, () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const corrected = yield* Deferred.make<void>()
        const left = yield* Deferred.make<void>()
        let asked = 0
        const script: Script = () =>
          Effect.suspend(() => {
            asked++
            if (asked === 1) return Effect.succeed(flawed)
            if (asked > 2) return Effect.succeed(says("hello again"))
            return Deferred.succeed(corrected, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Deferred.succeed(left, undefined))
            )
          })
        yield* Effect.forkScoped(runAgent({ plane, script }))
        const inbox_id = yield* plane.say("tell me")
        yield* Deferred.await(corrected)
        yield* stop(plane, { inbox_id })
        yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
        yield* Deferred.await(left)
        assert.deepStrictEqual(cancels(plane), [["edge", STOPPED, 1]])
        yield* plane.say("hello")
        yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
        assert.deepStrictEqual(said(plane), [
          ["reply", "1", "Stopped."],
          ["reply", "2", "hello again"]
        ])
        assert.strictEqual(asked, 3)
      })
    )

    it.effect(`ends such a turn also after a crash, with ${what} as the newest event`, () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        let asked = 0
        const script: Script = () => Effect.suspend(() => (asked++ === 0 ? Effect.succeed(flawed) : Effect.never))
        const first = yield* Effect.forkScoped(runAgent({ plane, script }))
        const inbox_id = yield* plane.say("tell me")
        yield* plane.cutOffAt(2)
        yield* Fiber.interrupt(first)
        assert.strictEqual(plane.state().edge.state, "EDGE_FINALIZING")
        yield* stop(plane, { inbox_id })
        yield* Effect.forkScoped(runAgent({ plane, script: () => Effect.never, epoch: 2 }))
        yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
        assert.deepStrictEqual(said(plane), [["reply", "1", "Stopped."]])
        assert.deepStrictEqual(cancels(plane), [["edge", STOPPED, 1]])
      })
    )
  }

  for (const kept of [1, 2, 3, 4, 5, 6])
    it.effect(`survives a crash after ${kept} events: one reply, and the tool does not run again`, () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        let runs = 0
        const started = yield* Deferred.make<void>()
        const send = testTool(
          "out.send",
          () =>
            Effect.sync(() => runs++).pipe(
              Effect.andThen(Deferred.succeed(started, undefined)),
              Effect.andThen(Effect.never)
            ),
          { effect: "external" }
        )
        // A model that would go on for ever with what it began.
        const script: Script = (messages) =>
          Effect.succeed(messages.at(-1)?.role === "user" ? calls(["out.send", {}]) : says("went on"))
        const first = yield* Effect.forkScoped(runAgent({ plane, script, tools: [send] }))
        const inbox_id: InboxId = yield* plane.say("send it")
        if (kept < 4) yield* plane.cutOffAt(kept)
        else {
          yield* Deferred.await(started)
          yield* Effect.all([stop(plane, { inbox_id }), plane.cutOffAt(kept)], { concurrency: 2 })
        }
        yield* Fiber.interrupt(first)
        if (kept < 4) yield* stop(plane, { inbox_id })
        yield* Effect.forkScoped(runAgent({ plane, script, tools: [send], epoch: 2 }))
        yield* plane.until(
          (events, state) => spoken(events).length === 1 && ofType(events, "Cancelled").length === 1 && quiet(state)
        )
        assert.isAtMost(runs, 1)
        assert.strictEqual(said(plane)[0]?.[1], "1")
      })
    )
})
