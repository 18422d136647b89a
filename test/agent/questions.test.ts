/** Jobs that need to know something (need_info), and messages that have to wait. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { JobName, SignalId } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { QUESTION_WAIT_MS_MAX } from "#src/agent/session/CoreJob.ts"

const QUESTION = "Which branch?"
const report = testTool("choir.core.report", () => Effect.succeed({ status: "success", summary: "told" }), {
  effect: "none",
  lanes: "core"
})

const userText = (messages: ReadonlyArray<Message>) => messages.findLast(({ role }) => role === "user")?.content ?? ""
const isAsked = (messages: ReadonlyArray<Message>) => messages.at(-1)?.role === "user"

/** Edge starts a job that asks, tells the user what it asks, and passes the answer on. */
const edgeSays = (messages: ReadonlyArray<Message>) => {
  const text = userText(messages)
  if (text.startsWith("<choir-note>\nReport:")) return says(`relayed ${text.split("\n")[2]}`)
  if (!isAsked(messages)) return says("done")
  return text === "go"
    ? calls(["choir.core.spawn", { job_name: "work", task_spec: "merge" }])
    : calls(["choir.core.inject", { job_name: "work", content: text }])
}

const coreSays = (messages: ReadonlyArray<Message>) => {
  const told = messages.find(({ content }) => content?.startsWith("<choir-note>\nFurther instruction:") === true)
  if (told !== undefined) return says(`merged ${told.content}`)
  if (messages.some(({ content }) => content?.includes("Nobody has answered") === true)) return says("gave up")
  return messages.some(({ role }) => role === "tool")
    ? assert.fail("a job that asked is not to be asked again before the answer")
    : calls(["choir.core.report", { kind: "need_info", text: QUESTION }])
}
const script: Script = (messages) => Effect.sync(() => (isCore(messages) ? coreSays(messages) : edgeSays(messages)))

describe("need_info", () => {
  it.effect("reaches the user through edge, and the answer goes to the job, which waits for it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [report] }))
      yield* plane.say("go")
      yield* plane.until((events) => spoken(events).length === 2)
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => [payload.kind, payload.text, payload.in_reply_to]),
        [
          ["reply", "done", "1"],
          ["report", `relayed {"job_name":"work","asks":"${QUESTION}"}`, "1"]
        ]
      )
      assert.strictEqual(plane.state().cores.size, 1)
      yield* plane.say("main")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.strictEqual(
        ofType(plane.events, "CoreStopped")[0]?.payload.summary,
        "merged <choir-note>\nFurther instruction: main\n</choir-note>"
      )
    })
  )

  it.effect(
    "is over with the words that the job says to the answer: it is not asked again with its own words last",
    () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const lasts: Array<string | undefined> = []
        const seen: Script = (messages, tools) => {
          if (isCore(messages)) lasts.push(messages.at(-1)?.role)
          return script(messages, tools)
        }
        yield* Effect.forkScoped(runAgent({ plane, script: seen, tools: [report] }))
        yield* plane.say("go")
        yield* plane.until((events) => spoken(events).length === 2)
        yield* plane.say("main")
        yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
        assert.deepStrictEqual(lasts, ["user", "user"])
      })
  )

  it.effect("is answered by the user in place: each answer reaches its job, and edge learns of it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const notes: Array<string> = []
      const both: Script = (messages, tools) => {
        if (isCore(messages)) return script(messages, tools)
        notes.push(...messages.flatMap(({ content }) => content?.match(/The user answered job .*/u)?.slice() ?? []))
        const jobs = ["sow", "dig"].map((job_name) => ["choir.core.spawn", { job_name, task_spec: "merge" }] as const)
        return Effect.succeed(isAsked(messages) && userText(messages) === "go" ? calls(...jobs) : says("told"))
      }
      yield* Effect.forkScoped(runAgent({ plane, script: both, tools: [report] }))
      yield* plane.say("go")
      yield* plane.until((events) => spoken(events).length === 3)
      assert.sameDeepMembers(
        spoken(plane.events)
          .slice(1)
          .map(({ payload }) => [payload.job, payload.facts]),
        ["dig", "sow"].map((name) => [JobName.make(name), `${name} waits for your answer: /answer ${name} …`])
      )
      const answer = (id: string, job: string, content: string) =>
        plane.push({ type: "Inject", signal_id: SignalId.make(id), content, job_name: JobName.make(job) })
      yield* answer("7", "dig", "main")
      yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
      yield* answer("8", "sow", "next")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 2 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "CoreStopped").map(({ payload }) => [payload.job_name, payload.summary.split("\n")[1]]),
        [
          [JobName.make("dig"), "Further instruction: main"],
          [JobName.make("sow"), "Further instruction: next"]
        ]
      )
      // It comes too late for a job that has ended, and says so.
      yield* answer("9", "dig", "other")
      yield* plane.until((events) => ofType(events, "InjectedInstruction").length === 3)
      assert.strictEqual(ofType(plane.events, "InjectedInstruction").at(-1)?.payload.refused, "the job dig has ended")
    })
  )

  it.effect("goes on without an answer after its time, and in a later epoch waits only for what is left (E12)", () =>
    Effect.gen(function* () {
      const plane = yield* makeMemoryControlPlane
      const first = yield* Effect.forkScoped(runAgent({ plane, script, tools: [report] }))
      const clock = yield* ticking
      yield* plane.say("go")
      yield* plane.until((events) => spoken(events).length === 2)
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(clock)
      yield* TestClock.adjust(QUESTION_WAIT_MS_MAX - 1000)
      assert.strictEqual(plane.state().cores.size, 1)
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [report], epoch: 2 }))
      yield* ticking
      yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.summary, "gave up")
    })
  )

  it.effect("is dropped unasked when the job ends before edge could tell", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const held = yield* Deferred.make<void>()
      const slow: Script = (messages, tools) =>
        isCore(messages) || isAsked(messages) ? script(messages, tools) : Effect.as(Deferred.await(held), says("done"))
      yield* Effect.forkScoped(runAgent({ plane, script: slow, tools: [report] }))
      yield* plane.say("go")
      yield* plane.until((_, state) => state.reports.some(({ kind }) => kind === "question"))
      yield* plane.push({ type: "CancelCore", signal_id: SignalId.make("7"), job_name: JobName.make("work") })
      yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
      assert.deepStrictEqual(
        plane.state().reports.map(({ kind }) => kind),
        ["stopped"]
      )
      yield* Deferred.succeed(held, undefined)
      yield* plane.until((_, state) => quiet(state))
      assert.strictEqual(spoken(plane.events).length, 2)
    })
  )
})

describe("a message that waits", () => {
  it.effect("is acknowledged with its place once, however often it is delivered, and has its own turn", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const held = yield* Deferred.make<void>()
      const slow: Script = () => Effect.as(Deferred.await(held), says("heard"))
      const life = yield* Effect.forkScoped(runAgent({ plane, script: slow }))
      yield* plane.say("one")
      yield* plane.until((_, state) => state.edge.turn !== undefined)
      yield* plane.say("two")
      yield* plane.say("three")
      yield* plane.until((events) => ofType(events, "AgentMessage").length === 2)
      yield* Fiber.interrupt(life)
      yield* Effect.forkScoped(runAgent({ plane, script: slow, epoch: 2 }))
      yield* Deferred.succeed(held, undefined)
      yield* plane.until((events, state) => spoken(events).length === 3 && quiet(state))
      assert.deepStrictEqual<unknown>(
        ofType(plane.events, "AgentMessage").map(({ payload }) => [payload.kind, payload.in_reply_to]),
        [
          ["notice", "2"],
          ["notice", "3"],
          ["reply", "1"],
          ["reply", "2"],
          ["reply", "3"]
        ]
      )
      assert.match(ofType(plane.events, "AgentMessage")[1]?.payload.text ?? "", /number 2 in the queue/u)
    })
  )
})
