/** A session that reaches a limit and the one that continues it, and a new conversation by a person's order. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { InboxId, ResourceName, SessionId, SignalId } from "#schema/Ids.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { summaryTool } from "#src/agent/session/shutdownNotice.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, type Said, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

const SUMMARY = { title: "Plans", summary: "Ada plans a trip.", decisions: [], open_points: ["the train"], facts: [] }

const isSummaryCall = (tools: ReadonlyArray<Tool>) => tools.some((tool) => tool.name === summaryTool.name)
const sumUp = () => calls(["choir.session.summary", SUMMARY])
const asked = (messages: ReadonlyArray<Message>) => messages.findLast(({ role }) => role === "user")?.content ?? ""
/** What a session is summed up with, and otherwise what `answer` says. */
const model =
  (answer: (messages: ReadonlyArray<Message>) => Effect.Effect<Said> | Said): Script =>
  (messages, tools) => {
    const said = isSummaryCall(tools) ? sumUp() : answer(messages)
    return Effect.isEffect(said) ? said : Effect.succeed(said)
  }
const costly = (said: Said, input_tokens: number): Said => ({ ...said, usage: { input_tokens, output_tokens: 0 } })

const ends = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "Cancelled").filter(({ payload }) => payload.turn === undefined && payload.target === "edge")
const texts = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "AgentMessage").map(({ payload }) => [payload.kind, payload.in_reply_to, payload.text ?? ""] as const)
const replies = (events: ReadonlyArray<ChoirEvent>) =>
  texts(events).flatMap(([kind, id, text]) => (kind === "reply" ? [[id, text]] : []))

const CARRIED = {
  type: "UserMessage",
  inbox_id: InboxId.make("7"),
  dm: ResourceName.make("me"),
  text: "and the hotel?",
  attachments: [],
  created_at: "2026-01-01T00:00:00.000Z",
  carried: true
} as const

describe("a session at its limit", () => {
  it.effect("leaves the message that met its limit to the next session, with a summary (R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = model((messages) => costly(says(`about ${asked(messages)}`), 1000))
      const config = agentConfig({ total_session_tokens: 1000 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* plane.say("the train")
      yield* plane.until((events, state) => replies(events).length === 1 && quiet(state))
      yield* plane.say("the hotel")
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      assert.deepStrictEqual(
        ends(plane.events).map(({ payload }) => `${payload.by} ${payload.carried}`),
        ["budget 2"]
      )
      assert.deepStrictEqual(replies(plane.events), [["1", "about the train"]])
      const [, notice] = texts(plane.events)
      assert.deepStrictEqual(notice?.slice(0, 2), ["notice", "2"])
      assert.include(notice?.[2], "your message is answered there")
      assert.deepStrictEqual(plane.summaries, [SUMMARY])
      assert.strictEqual(plane.state().edge.turn, undefined)
    })
  )

  it.effect("is continued by one that knows its summary, its label, and the message that it left", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const prompts: Array<string> = []
      const script = model((messages) => {
        prompts.push(JSON.stringify(messages))
        return says("the hotel is booked")
      })
      yield* Effect.forkScoped(runAgent({ plane, script }))
      const session_id = SessionId.make("0".repeat(16))
      yield* plane.push({
        type: "Continue",
        signal_id: SignalId.make("1"),
        session_id,
        summary: SUMMARY,
        sources: ["web:example.org"]
      })
      yield* plane.push(CARRIED)
      yield* plane.until((events, state) => replies(events).length === 1 && quiet(state))
      assert.include(prompts[0], "Ada plans a trip.")
      assert.include(prompts[0], "the train")
      const { edge } = plane.state()
      assert.deepStrictEqual([edge.tainted, edge.sources], [true, ["web:example.org"]])
      assert.deepStrictEqual(edge.summary.referenced_sessions, [session_id])
      assert.isTrue(ofType(plane.events, "UserMsg")[0]?.payload.carried)
    })
  )

  it.effect("answers a message that needs more than a session itself, so that it does not move on for ever", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const first of [true, false]) {
        const plane = yield* makeMemoryControlPlane
        let step = 0
        const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }))
        const script = model(() => costly(calls(["mem.read", { step: step++ }]), 600))
        const config = agentConfig({ total_session_tokens: 1000 })
        const agent = yield* Effect.forkScoped(runAgent({ plane, script, config, tools: [read] }))
        if (!first)
          yield* plane.push({
            type: "Continue",
            signal_id: SignalId.make("1"),
            session_id: SessionId.make("0".repeat(16)),
            summary: SUMMARY
          })
        yield* first ? plane.say("loop") : plane.push(CARRIED)
        assert.strictEqual(yield* Fiber.join(agent), "budget")
        assert.strictEqual(ends(plane.events)[0]?.payload.carried, undefined)
        const [[, text] = ["", ""]] = replies(plane.events)
        assert.include(text, "this message alone would need more than that")
      }
    })
  )

  it.effect("names the calls that already ran for the message, so that the next session does not repeat them", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const send = testTool("mem.send", () => Effect.succeed({ status: "success", summary: "sent to Ada" }), {
        effect: "external"
      })
      const script = model((messages) =>
        asked(messages) === "hello" ? says("hello") : costly(calls(["mem.send", { to: "ada" }]), 1000)
      )
      const config = agentConfig({ total_session_tokens: 1000 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, config, tools: [send] }))
      yield* plane.say("hello")
      yield* plane.until((events, state) => replies(events).length === 1 && quiet(state))
      yield* plane.say("write to Ada")
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      const [done, model_point] = plane.summaries[0]?.open_points ?? []
      assert.include(done, "Already done for the message that is not answered yet (success: sent to Ada)")
      assert.include(done, '{"to":"ada"}')
      assert.strictEqual(model_point, "the train")
    })
  )

  it.effect("tells of the jobs that end with it, and leaves their tasks to the next session", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let step = 0
      const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }))
      const script = model((messages) => {
        if (isCore(messages))
          return Effect.delay(
            Effect.sync(() => costly(calls(["mem.read", { step: step++ }]), 400)),
            500
          )
        return messages.at(-1)?.role === "user"
          ? calls(["choir.core.spawn", { job_name: "research", task_spec: "Find the cheapest train" }])
          : says("started")
      })
      const config = agentConfig({ total_session_tokens: 2000 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, config, tools: [read] }))
      yield* plane.say("find a train")
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      const told = texts(plane.events).filter(([, , text]) => text.startsWith("The job research ended (budget)"))
      assert.deepStrictEqual(
        told.map(([kind, id]) => `${kind} ${id}`),
        ["notice 1"]
      )
      const open = plane.summaries[0]?.open_points ?? []
      assert.isTrue(
        open.some((point) => point.includes("The job research") && point.includes("Find the cheapest train"))
      )
    })
  )

  it.effect("says once, where the turn was asked, that most of it is used", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = model(() => costly(says("fine"), 300))
      yield* Effect.forkScoped(runAgent({ plane, script, config: agentConfig({ total_session_tokens: 1000 }) }))
      for (const text of ["one", "two", "three"]) {
        const before = replies(plane.events).length
        yield* plane.say(text)
        yield* plane.until((events, state) => replies(events).length > before && quiet(state))
      }
      const near = texts(plane.events).filter(([, , text]) =>
        text.includes("has used 80 % of its limit of 1,000 tokens")
      )
      assert.deepStrictEqual(
        near.map(([kind, id]) => `${kind} ${id}`),
        ["notice 3"]
      )
    })
  )

  it.effect("has a summary of its log where its model gives none, also after a crash before its goodbye", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = (_, tools) =>
        Effect.succeed(isSummaryCall(tools) ? says("no") : costly(says("Lisbon it is"), 1000))
      const config = agentConfig({ total_session_tokens: 1000 })
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* plane.say("Where do we travel?")
      yield* plane.until((events, state) => replies(events).length === 1 && quiet(state))
      yield* plane.say("and then?")
      assert.strictEqual(yield* Fiber.join(agent), "budget")
      const [first] = plane.summaries
      assert.include(first?.summary, "The agent: Lisbon it is")
      const outputs = ofType(plane.events, "ModelOutput").length
      assert.strictEqual(yield* runAgent({ plane, script, config, epoch: 2 }), "budget")
      assert.deepStrictEqual(plane.summaries, [first, first])
      assert.strictEqual(ofType(plane.events, "ModelOutput").length, outputs)
      assert.strictEqual(ends(plane.events).length, 1)
    })
  )
})

const ORDER = { type: "NewSession", signal_id: SignalId.make("50") } as const

describe("an order for a new conversation", () => {
  it.effect("lets the open turn have its answer, and leaves messages that wait to the new session", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const script = model(() =>
        Effect.as(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), says("done"))
      )
      const agent = yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("one")
      yield* Deferred.await(begun)
      yield* plane.push(ORDER)
      yield* plane.say("two")
      yield* plane.until((events) => texts(events).length === 1)
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual(yield* Fiber.join(agent), "user")
      assert.strictEqual(yield* Deferred.await(plane.terminated), "new")
      assert.deepStrictEqual(replies(plane.events), [["1", "done"]])
      assert.deepStrictEqual(
        ofType(plane.events, "UserMsg").map(({ payload }) => payload.inbox_id),
        ["1"]
      )
      assert.deepStrictEqual(
        ends(plane.events).map(({ payload }) => `${payload.by} ${payload.signal_id} ${payload.carried}`),
        ["user 50 undefined"]
      )
      assert.deepStrictEqual(plane.summaries, [SUMMARY])
    })
  )

  it.effect("is not carried out where a job began meanwhile, unless the person said that jobs may end", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const end_jobs of [false, true]) {
        const plane = yield* makeMemoryControlPlane
        const script = model((messages) => {
          if (isCore(messages)) return Effect.never
          return messages.at(-1)?.role === "user" && asked(messages) === "start"
            ? calls(["choir.core.spawn", { job_name: "research", task_spec: "read" }])
            : says("fine")
        })
        const agent = yield* Effect.forkScoped(runAgent({ plane, script }))
        yield* plane.say("start")
        yield* plane.until((events, state) => replies(events).length === 1 && state.cores.size === 1)
        yield* plane.push(end_jobs ? { ...ORDER, end_jobs } : ORDER)
        if (end_jobs) {
          assert.strictEqual(yield* Fiber.join(agent), "user")
          assert.deepStrictEqual(
            ofType(plane.events, "CoreStopped").map(({ payload }) => payload.outcome),
            ["cancelled"]
          )
          continue
        }
        yield* plane.until((events) => ofType(events, "Cancelled").length === 1)
        assert.include(texts(plane.events).at(-1)?.[2], "a job began meanwhile: research")
        yield* plane.say("still there?")
        yield* plane.until((events) => replies(events).length === 2)
        yield* Fiber.interrupt(agent)
      }
    })
  )
})
