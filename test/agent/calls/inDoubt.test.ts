/** An external call whose agent dies: what is known of it decides what becomes of it, wherever the death comes (D3, R6). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

/** What a life does to itself; `die` cuts it off from choird and ends it. */
interface Moments {
  readonly committed?: (commit: number) => boolean
  readonly acknowledged?: number
  readonly begins?: boolean
  readonly ends?: boolean
}

/**
 * Revisions and commits are the same here: a message, the call's output, its request, its intent, its result. The request goes to choird
 * together with the intent, so that choird never has it alone.
 */
const POINTS: ReadonlyArray<readonly [string, Moments, { readonly runs: number; readonly status: string }]> = [
  ["its request is committed", { committed: (commit) => commit === 3 }, { runs: 1, status: "success" }],
  ["its intent is committed", { committed: (commit) => commit === 4 }, { runs: 1, status: "success" }],
  [
    "choird has its intent, and the agent does not know",
    { acknowledged: 4 },
    { runs: 0, status: "unknown_after_crash" }
  ],
  ["it begins to run", { begins: true }, { runs: 1, status: "unknown_after_crash" }],
  ["it has run", { ends: true }, { runs: 1, status: "unknown_after_crash" }],
  ["its result is committed", { committed: (commit) => commit === 5 }, { runs: 1, status: "unknown_after_crash" }],
  ["choird has its result, and the agent does not know", { acknowledged: 5 }, { runs: 1, status: "success" }]
]

const notices = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "AgentMessage").flatMap(({ payload }) => (payload.kind === "notice" ? [payload] : []))

const makeLife = Effect.fnUntraced(function* (plane: MemoryControlPlane, moments: Moments) {
  const dead = yield* Deferred.make<void>()
  const die = () => {
    plane.cutOff()
    Deferred.doneUnsafe(dead, Effect.void)
  }
  let commits = 0
  const onCommit = () => {
    commits += 1
    if (moments.committed?.(commits) === true) die()
  }
  const { acknowledged } = moments
  return { die, onCommit, dead: acknowledged === undefined ? Deferred.await(dead) : plane.cutOffAt(acknowledged) }
})

/** One life that dies as the moments say, then one that lives on; both see the same message. */
const liveTwice = Effect.fnUntraced(function* (script: Script, moments: Moments) {
  const plane = yield* makeMemoryControlPlane
  const ledger: Array<string> = []
  const life = yield* makeLife(plane, moments)
  let deadly = true
  const send = testTool(
    "out.send",
    ({ call_id }) =>
      Effect.gen(function* () {
        ledger.push(call_id)
        if (deadly && moments.begins === true) life.die()
        yield* Effect.sleep("50 millis")
        if (deadly && moments.ends === true) life.die()
        return { status: "success", summary: "sent" } as const
      }),
    { effect: "external", readOnly: true }
  )
  yield* plane.say("send it")
  const first = yield* Effect.forkChild(runAgent({ plane, script, tools: [send], onCommit: life.onCommit }))
  yield* life.dead
  yield* Fiber.interrupt(first)
  deadly = false
  const second = yield* Effect.forkChild(runAgent({ plane, script, tools: [send], epoch: 2 }))
  yield* plane.until((events, state) => ofType(events, "AgentMessage").some(isAnswer) && quiet(state))
  yield* Fiber.interrupt(second)
  return { plane, ledger }
})

const isAnswer = ({ payload }: { readonly payload: { readonly kind: string } }) => payload.kind !== "notice"

describe("an external call of an agent that dies", () => {
  for (const [when, moments, { runs, status }] of POINTS)
    it.effect(`when ${when}: ${runs === 1 ? "ran once" : "never ran"}, ${status}`, () =>
      Effect.gen(function* () {
        yield* ticking
        const seen: Array<ReadonlyArray<Message>> = []
        const script: Script = (messages) => {
          seen.push(messages)
          return Effect.succeed(messages.at(-1)?.role === "tool" ? says("so be it") : calls(["out.send", {}]))
        }
        const { ledger, plane } = yield* liveTwice(script, moments)
        assert.lengthOf(ledger, runs)
        const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
        assert.deepStrictEqual(
          results.map((result) => result.status),
          [status]
        )
        const inDoubt = status === "unknown_after_crash"
        assert.strictEqual(
          seen.at(-1)?.some(({ content }) => content?.includes("unknown_after_crash")),
          inDoubt
        )
        const told = notices(plane.events)
        assert.lengthOf(told, inDoubt ? 1 : 0)
        if (inDoubt) {
          assert.match(told[0]?.text ?? "", /while out-send ran\. I do not know whether it took effect/u)
          assert.strictEqual(told[0]?.in_reply_to, "1")
        }
      })
    )

  it.effect("is told to the user once, although the agent dies again while it says so", () =>
    Effect.gen(function* () {
      yield* ticking
      const script: Script = (messages) =>
        Effect.succeed(messages.some(({ role }) => role === "tool") ? says("") : calls(["out.send", {}]))
      for (const again of [{ committed: (commit: number) => commit === 1 }, { acknowledged: 6 }]) {
        const plane = yield* makeMemoryControlPlane
        const send = testTool("out.send", () => Effect.never, { effect: "external", readOnly: true })
        yield* plane.say("send it")
        const first = yield* Effect.forkChild(runAgent({ plane, script, tools: [send] }))
        yield* plane.until((events) => ofType(events, "ToolCallCommitted").length === 1)
        yield* Fiber.interrupt(first)
        const life = yield* makeLife(plane, again)
        const second = yield* Effect.forkChild(
          runAgent({ plane, script, tools: [send], epoch: 2, onCommit: life.onCommit })
        )
        yield* life.dead
        yield* Fiber.interrupt(second)
        const third = yield* Effect.forkChild(runAgent({ plane, script, tools: [send], epoch: 3 }))
        yield* plane.until((events, state) => ofType(events, "AgentMessage").some(isAnswer) && quiet(state))
        yield* Fiber.interrupt(third)
        assert.lengthOf(notices(plane.events), 1)
        assert.lengthOf(ofType(plane.events, "ToolResultCommitted"), 1)
      }
    })
  )

  it.effect("is told as the job's where a job made it, in reply to the message that started the job", () =>
    Effect.gen(function* () {
      yield* ticking
      const script: Script = (messages) => {
        const last = messages.at(-1)
        if (isCore(messages)) return Effect.succeed(last?.role === "tool" ? says("done") : calls(["out.send", {}]))
        const isNew = last?.role === "user" && !last.content.startsWith("<choir-note>\nReport:")
        return Effect.succeed(
          isNew ? calls(["choir.core.spawn", { job_name: "mail", task_spec: "send it" }]) : says("told")
        )
      }
      const { ledger, plane } = yield* liveTwice(script, { begins: true })
      yield* plane.until((events) => ofType(events, "CoreStopped").length === 1)
      assert.lengthOf(ledger, 1)
      const [told] = notices(plane.events)
      assert.match(told?.text ?? "", /out-send ran for the job mail\./u)
      assert.strictEqual(told?.in_reply_to, "1")
    })
  )
})
