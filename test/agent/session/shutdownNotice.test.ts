import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { Summary, SUMMARY_LIMITS } from "#schema/Summary.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import {
  safePointMs,
  STOP_RESERVE_MS,
  summaryOf,
  summaryPrompt,
  summaryTool
} from "#src/agent/session/shutdownNotice.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { emptySummary } from "#src/shared/session/memory.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, type Said, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

const SUMMARY = {
  title: "A greeting",
  summary: "The user said hello.",
  decisions: ["to be polite"],
  open_points: ["the weather"],
  facts: []
}

const isSummaryCall = (tools: ReadonlyArray<Tool>) => tools.some((tool) => tool.name === summaryTool.name)

/** Answers every message, and the end of a session as `end` says. */
const script =
  (end: (messages: ReadonlyArray<Message>) => Effect.Effect<Said>): Script =>
  (messages, tools) =>
    isSummaryCall(tools) ? end(messages) : Effect.succeed(says("hello yourself"))

const sumUp = (input: Schema.Json = SUMMARY) => calls(["choir.session.summary", input])
const summaries = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "ModelOutput").filter(({ payload }) => payload.purpose === "summary")

/** One life that takes a message, if there is one, and is stopped. */
const liveAndStop = Effect.fnUntraced(function* (
  plane: MemoryControlPlane,
  options: Omit<Parameters<typeof runAgent>[0], "plane"> & { readonly text?: string; readonly deadline_ms?: number }
) {
  const { deadline_ms = 60_000, text, ...agent } = options
  const life = yield* Effect.forkScoped(runAgent({ plane, ...agent }))
  if (text !== undefined) {
    const before = ofType(plane.events, "AgentMessage").length
    yield* plane.say(text)
    yield* plane.until((events, state) => ofType(events, "AgentMessage").length > before && quiet(state))
  }
  const asked_at = yield* Clock.currentTimeMillis
  yield* plane.push({ type: "Stop", deadline_ms })
  const reason = yield* Fiber.join(life)
  return { reason, took_ms: (yield* Clock.currentTimeMillis) - asked_at }
})

describe("the end of a session", () => {
  it.effect("is summed up by the model from what its window holds, in an event that counts", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const seen: Array<Message> = []
      const end = (messages: ReadonlyArray<Message>) => Effect.sync(() => (seen.push(...messages), sumUp()))
      const { reason } = yield* liveAndStop(plane, { script: script(end), text: "good morning" })
      assert.strictEqual(reason, "stopped")
      assert.deepStrictEqual(plane.summaries, [SUMMARY])
      assert.strictEqual(plane.events.at(-1)?.event_type, "ModelOutput")
      assert.strictEqual(summaries(plane.events).length, 1)
      assert.strictEqual(plane.state().spent.tokens, 2 * 15)
      const asked = seen.map(({ content }) => content).join("\n")
      for (const part of ["good morning", "hello yourself", "UserMsg", "Reference summary"]) assert.include(asked, part)
    })
  )

  it.effect("needs no second summary where nothing happened since, and gives the one of a crashed goodbye again", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let asked = 0
      const end = () => Effect.sync(() => sumUp({ ...SUMMARY, title: `number ${++asked}` }))
      yield* liveAndStop(plane, { script: script(end) })
      assert.deepStrictEqual([asked, plane.summaries], [0, [undefined]])
      // It dies when choird has the summary's event and the goodbye is on its way.
      const dying = yield* Effect.forkScoped(runAgent({ plane, script: script(end), epoch: 2 }))
      yield* plane.say("hello")
      yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 1 && quiet(state))
      yield* plane.push({ type: "Stop", deadline_ms: 60_000 })
      yield* plane.cutOffAt(plane.events.length + 1)
      yield* Fiber.interrupt(dying)
      assert.strictEqual(summaries(plane.events).length, 1)
      yield* liveAndStop(plane, { script: script(end), epoch: 3 })
      yield* liveAndStop(plane, { script: script(end), epoch: 4, text: "again" })
      assert.strictEqual(asked, 2)
      assert.deepStrictEqual(
        plane.summaries.map((summary) => summary?.title),
        [undefined, "number 1", "number 2"]
      )
    })
  )

  for (const [name, end] of [
    ["fails", () => Effect.succeed({ finish_reason: "error", error: { kind: "http", message: "no" } } satisfies Said)],
    ["talks instead", () => Effect.succeed(says("goodbye"))],
    ["leaves fields out", () => Effect.succeed(sumUp({ title: "t", summary: "s" }))]
  ] satisfies ReadonlyArray<readonly [string, () => Effect.Effect<Said>]>)
    it.effect(`goes without a summary when the model ${name}`, () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        assert.strictEqual((yield* liveAndStop(plane, { script: script(end), text: "hi" })).reason, "stopped")
        assert.deepStrictEqual(plane.summaries, [undefined])
      })
    )

  it.effect("waits for a slow model no longer than memory.summary_timeout_ms, and never past the stop's deadline", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const [deadline_ms, summary_timeout_ms, expected] of [
        [60_000, 3000, 3000],
        [12_000, 30_000, 12_000 - STOP_RESERVE_MS],
        [4000, 30_000, 0]
      ] as const) {
        const plane = yield* makeMemoryControlPlane
        const config = agentConfig()
        const { reason, took_ms } = yield* liveAndStop(plane, {
          script: script(() => Effect.never),
          config: { ...config, memory: { ...config.memory, summary_timeout_ms } },
          text: "hi",
          deadline_ms
        })
        assert.strictEqual(reason, "stopped")
        assert.isAtLeast(took_ms, expected)
        assert.isAtMost(took_ms, Math.min(expected + 1000, deadline_ms))
        assert.deepStrictEqual(plane.summaries, [undefined])
      }
    })
  )

  it.effect("closes jobs as cancelled first, so that the summary knows of it, and asks no model for them", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const asked = yield* Deferred.make<string>()
      const model: Script = (messages, tools) => {
        if (isSummaryCall(tools))
          return Effect.as(Deferred.succeed(asked, messages.map(({ content }) => content).join()), sumUp())
        if (isCore(messages)) return Effect.never
        return Effect.succeed(
          messages.at(-1)?.role === "user"
            ? calls(["choir.core.spawn", { job_name: "work", task_spec: "work" }])
            : says("started")
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script: model }))
      yield* plane.say("go")
      yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
      yield* plane.push({ type: "Stop", deadline_ms: 60_000 })
      assert.include(yield* Deferred.await(asked), "the agent was stopped")
      assert.strictEqual(yield* Deferred.await(plane.terminated), "stopped")
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "cancelled")
      assert.deepStrictEqual(plane.summaries, [SUMMARY])
    })
  )

  it.effect("is summed up at every limit, whatever that limit counts (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }))
      let step = 0
      const model: Script = (_, tools) =>
        Effect.sync(() => (isSummaryCall(tools) ? sumUp() : calls(["mem.read", { step: step++ }])))
      for (const budgets of [{ total_session_tokens: 60 }, { max_tool_calls_per_session: 2 }]) {
        const plane = yield* makeMemoryControlPlane
        const agent = yield* Effect.forkScoped(
          runAgent({ plane, script: model, tools: [read], config: agentConfig(budgets) })
        )
        yield* plane.say("loop")
        assert.strictEqual(yield* Fiber.join(agent), "budget")
        assert.deepStrictEqual(plane.summaries, [SUMMARY])
      }
    })
  )

  it.effect("goes on with the session afterwards as if it had not been summed up", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const model = script(() => Effect.succeed(sumUp()))
      yield* liveAndStop(plane, { script: model, text: "one" })
      const [before] = [plane.state().edge]
      yield* liveAndStop(plane, { script: model, text: "two", epoch: 2 })
      assert.deepStrictEqual([before.state, plane.state().edge.state], ["EDGE_IDLE", "EDGE_IDLE"])
      assert.strictEqual(ofType(plane.events, "AgentMessage").length, 2)
    })
  )

  it("leaves edge at least a third of the stop for its safe point, however long the summary may take", () => {
    assert.strictEqual(safePointMs(60_000, 30_000), 25_000)
    assert.strictEqual(safePointMs(35_000, 30_000), 10_000)
    assert.strictEqual(safePointMs(65_000, 600_000), 20_000)
    assert.strictEqual(safePointMs(2000, 30_000), 0)
  })

  it("cuts what a model says to the limits that choird accepts, and keeps what it knows of the fields", () => {
    const long = "x".repeat(10_000)
    const input = {
      title: long,
      summary: `\0${long}`,
      decisions: Array(99).fill(long),
      open_points: [],
      facts: ["\ud800"]
    }
    const event = {
      event_type: "ModelOutput",
      payload: {
        purpose: "summary",
        tool_calls: [{ call_id: "c", name: "choir-session-summary", input: { ...input, more: 1 } }]
      }
    } as unknown as ChoirEvent
    const summary = summaryOf(event)
    assert.isTrue(Schema.is(Summary)(summary))
    assert.strictEqual(summary?.decisions.length, SUMMARY_LIMITS.entries)
    assert.strictEqual(summary?.summary.at(0), "\uFFFD")
    assert.deepStrictEqual(Object.keys(summary ?? {}), Object.keys(SUMMARY))
    const turn = { ...event, payload: { ...event.payload, purpose: "turn" } } as ChoirEvent
    assert.isUndefined(summaryOf(turn))
  })

  it.effect("shows the newest events that the model has room for", () =>
    Effect.gen(function* () {
      const folding = Array.from({ length: 50 }, (_, index) => ({
        event: { rev: index + 1, event_type: "UserMsg" } as ChoirEvent,
        hash: "",
        messages: [{ role: "user" as const, content: `message ${index} ${"y".repeat(100)}` }]
      }))
      const shown = (tokens: number) =>
        Effect.map(summaryPrompt(emptySummary, folding, tokens), (messages) =>
          messages.map(({ content }) => content).join("\n")
        ).pipe(Effect.provide(TokenCount.layer))
      assert.include(yield* shown(100_000), "message 0 ")
      const little = yield* shown(1200)
      assert.include(little, "message 49 ")
      assert.notInclude(little, "message 0 ")
      assert.notInclude(yield* shown(0), "message 49 ")
    })
  )
})
