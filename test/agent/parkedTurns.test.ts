/** A turn that waits for a person gives way to messages, with everything real but choird, the model and the tools. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SignalId } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCompaction, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

const config = { ...agentConfig(), approvals: { timeout_ms: 1_800_000, confirm_external: "always" as const } }

const lastUser = (messages: ReadonlyArray<Message>) => messages.findLast(({ role }) => role === "user")?.content ?? ""

const SUMMARY = calls(["choir.memory.delta", { mode: "append", summary_update: "They greeted." }])

/** Each tool message stands behind its call, and each call has its result: what providers insist on. */
const checked = (messages: ReadonlyArray<Message>): void => {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === "tool") {
      assert.isTrue(open.delete(message.call_id), "a result stands without its call")
      continue
    }
    assert.strictEqual(open.size, 0, "something stands between a call and its result")
    if (message.role === "assistant") for (const { id } of message.calls ?? []) open.add(id)
  }
  assert.strictEqual(open.size, 0, "a call without its result is shown")
}

const start = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const ledger: Array<string> = []
  const prompts: Array<ReadonlyArray<Message>> = []
  const send = testTool(
    "out.send",
    ({ call_id }) => Effect.sync(() => (ledger.push(call_id), { status: "success", summary: "sent" })),
    { effect: "external" }
  )
  const gate = yield* Deferred.make<void>()
  /** Answers to the first message that are to be empty. */
  const left = { empty: 0 }
  const script: Script = (messages) =>
    Effect.andThen(
      lastUser(messages) === "think" ? Deferred.await(gate) : Effect.void,
      Effect.sync(() => {
        checked(messages)
        prompts.push(messages)
        if (isCompaction(messages)) return SUMMARY
        const asked = lastUser(messages)
        const results = messages
          .slice(messages.findLastIndex(({ role }) => role === "user"))
          .filter(({ role }) => role === "tool")
        return asked.startsWith("send") && results.length === 0
          ? calls(["out.send", { to: "ada" }])
          : says(asked === "send it" && left.empty-- > 0 ? "" : `done: ${asked}`)
      })
    )
  const live = (epoch: number) => Effect.forkScoped(runAgent({ plane, script, tools: [send], config, epoch }))
  const agent = yield* live(1)
  const first = yield* plane.say("send it")
  yield* plane.until(() => plane.approvals.length === 1)
  const said = () => spoken(plane.events).map(({ payload }) => [payload.in_reply_to, payload.text])
  return { plane, ledger, prompts, said, live, agent, first, gate, left }
})

describe("a turn that waits for a person", () => {
  it.effect("lets other messages be answered, and goes on to its own reply once it is approved", () =>
    Effect.gen(function* () {
      const { ledger, plane, prompts, said } = yield* start
      yield* plane.say("hello")
      yield* plane.until((events) => spoken(events).length === 1)
      yield* plane.say("how are you")
      yield* plane.until((events) => spoken(events).length === 2)
      assert.deepStrictEqual(ledger, [])
      const between = prompts.find((messages) => lastUser(messages) === "hello") ?? []
      assert.isTrue(
        between.some(({ content }) => content?.includes("waits for a person's approval (out-send)") === true)
      )
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* plane.until((events, state) => spoken(events).length === 3 && quiet(state))
      assert.deepStrictEqual(said(), [
        ["2", "done: hello"],
        ["3", "done: how are you"],
        ["1", "done: send it"]
      ])
      assert.lengthOf(ledger, 1)
      assert.deepStrictEqual(
        ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.kind === "notice"),
        []
      )
    })
  )

  it.effect("goes on after the reply when it is approved while another turn runs", () =>
    Effect.gen(function* () {
      const { ledger, plane, said } = yield* start
      yield* plane.say("hello")
      yield* plane.until((events) => ofType(events, "UserMsg").length === 2)
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said(), [
        ["2", "done: hello"],
        ["1", "done: send it"]
      ])
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("waits with a second one that needs a person, and both are done once", () =>
    Effect.gen(function* () {
      const { ledger, plane, said } = yield* start
      yield* plane.say("send that too")
      yield* plane.until(() => plane.approvals.length === 2)
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* plane.decide(plane.approvals[1]!.approval_id, "rejected")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(
        said().map(([id]) => id),
        ["2", "1"]
      )
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("is asked once more for an empty answer, whatever was said in between", () =>
    Effect.gen(function* () {
      const { left, plane, said } = yield* start
      left.empty = 1
      yield* plane.say("hello")
      yield* plane.until((events) => spoken(events).length === 1)
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(said()[1], ["1", "done: send it"])
    })
  )

  for (const then of ["approved", "rejected"] as const)
    it.effect(`does not keep the messages after it from a compaction, and is ${then} with its call in sight`, () =>
      Effect.gen(function* () {
        const { agent, ledger, live, plane, prompts, said } = yield* start
        for (const [index, text] of ["one", "two", "three"].entries()) {
          yield* plane.say(text)
          yield* plane.until((events) => spoken(events).length === index + 1)
          yield* plane.push({ type: "Compact", signal_id: SignalId.make(`${index + 1}`) })
          yield* plane.until((events) => ofType(events, "CompactionCommitted").length === index + 1)
        }
        const { boundary, output_rev, window } = plane.state().edge
        assert.isAbove(boundary, output_rev)
        assert.deepStrictEqual(
          window.filter((rev) => rev <= boundary),
          [output_rev]
        )
        yield* Fiber.interrupt(agent)
        yield* live(2)
        yield* plane.decide(plane.approvals[0]!.approval_id, then)
        yield* plane.until((events, state) => spoken(events).length === 4 && quiet(state))
        assert.deepStrictEqual(said()[3], ["1", "done: send it"])
        assert.lengthOf(ledger, then === "approved" ? 1 : 0)
        const last = prompts.at(-1) ?? []
        assert.isTrue(last.some(({ role }) => role === "tool"))
        assert.isFalse(last.some(({ content }) => content === "done: two"))
        yield* plane.push({ type: "Compact", signal_id: SignalId.make("9") })
        yield* plane.until((events) => ofType(events, "CompactionCommitted").length === 4)
        assert.isTrue(plane.state().edge.window.every((rev) => rev > plane.state().edge.boundary))
      })
    )

  it.effect("survives a crash while another turn runs", () =>
    Effect.gen(function* () {
      const { agent, gate, ledger, live, plane } = yield* start
      yield* plane.say("think")
      yield* plane.until((events) => ofType(events, "UserMsg").length === 2)
      assert.isDefined(plane.state().edge.parked)
      yield* Fiber.interrupt(agent)
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* live(2)
      yield* Deferred.succeed(gate, undefined)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.lengthOf(ledger, 1)
    })
  )

  it.effect("is stopped by an order, and the approval then runs nothing", () =>
    Effect.gen(function* () {
      const { first, ledger, plane, said } = yield* start
      yield* plane.say("hello")
      yield* plane.until((events) => spoken(events).length === 1)
      yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("7"), turn: { inbox_id: first } })
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* Effect.sleep("1 minute")
      assert.deepStrictEqual([said()[1], ledger], [["1", "Stopped."], []])
    })
  )

  for (const approved of ["before", "after"])
    it.effect(`ends with the open turn that a person stops, and an approval ${approved} the stop runs nothing`, () =>
      Effect.gen(function* () {
        const { gate, ledger, plane, said } = yield* start
        const second = yield* plane.say("think")
        yield* plane.until((events) => ofType(events, "UserMsg").length === 2)
        const approve = plane.decide(plane.approvals[0]!.approval_id, "approved")
        if (approved === "before") yield* approve
        const from = plane.state().rev
        yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("7"), turn: { inbox_id: second } })
        yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
        if (approved === "after") yield* approve
        yield* Deferred.succeed(gate, undefined)
        yield* Effect.sleep("1 minute")
        assert.deepStrictEqual(
          plane.events.slice(from).map(({ event_type }) => event_type),
          ["Cancelled", "AgentMessage", "ToolResultCommitted", "Cancelled", "AgentMessage"]
        )
        assert.deepStrictEqual(
          ofType(plane.events, "Cancelled").map(({ payload }) => [payload.signal_id, payload.turn]),
          [
            ["7", ofType(plane.events, "UserMsg")[1]?.rev],
            [undefined, ofType(plane.events, "UserMsg")[0]?.rev]
          ]
        )
        assert.deepStrictEqual(said(), [
          ["2", "Stopped."],
          ["1", "Stopped."]
        ])
        assert.deepStrictEqual(ledger, [])
        yield* plane.say("hello")
        yield* plane.until((events, state) => spoken(events).length === 3 && quiet(state))
        assert.deepStrictEqual(said()[2], ["3", "done: hello"])
      })
    )

  it.effect("is closed by a stop of the agent, and answered at the next start", () =>
    Effect.gen(function* () {
      const { live, plane, said } = yield* start
      yield* plane.say("hello")
      yield* plane.until((events) => spoken(events).length === 1)
      yield* plane.push({ type: "Stop", deadline_ms: 20_000 })
      assert.strictEqual(yield* Deferred.await(plane.terminated), "stopped")
      yield* live(2)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.strictEqual(said()[1]?.[0], "1")
    })
  )
})
