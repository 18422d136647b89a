import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CallId, EDGE } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane, type HostCall, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { Unreachable } from "#src/agent/control/verbAnswer.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { planTools } from "#src/agent/tools/plans.ts"
import { initialState } from "#src/shared/session/fold.ts"

const context = { lane: EDGE, call_id: CallId.make("c-5-0"), seen: () => undefined, network: true }
const LINE = {
  plan_id: 3,
  when: "weekdays at 08:00",
  next: "tomorrow at 08:00",
  zone: "UTC",
  text: "stretch",
  state: "open"
}

/** An agent whose edge has read text from outside or not, beside a choird that answers in order. */
const beside = (tainted: boolean, ...answers: ReadonlyArray<HostReply | undefined>) => {
  const asked: Array<HostCall> = []
  const left = [...answers]
  const services = Layer.mergeAll(
    Layer.mock(Arbiter, {
      state: () => ({
        ...initialState,
        edge: { ...initialState.edge, tainted, sources: tainted ? (["web:example.org"] as const) : [] }
      })
    }),
    Layer.mock(ControlPlane, {
      execute: (call) =>
        Effect.suspend(() => {
          asked.push(call)
          const answer = left.shift()
          return answer === undefined
            ? Effect.fail(new Unreachable({ verb: "EXECUTE_HOST_TOOL", reason: "no answer" }))
            : Effect.succeed(answer)
        })
    }),
    Layer.mock(Replication, { acked: () => 0 })
  )
  return { asked, services }
}

const success = (output: HostReply["output"]): HostReply => ({ status: "success", output })

const toolsOf = Effect.map(planTools, ([set, list, cancel]) => ({ set, list, cancel }))

describe("the tools of plans", () => {
  it.effect("set a reminder with its times in the answer, and what was unclear in them", () =>
    Effect.gen(function* () {
      const { asked, services } = beside(false, success({ plan: LINE, doubt: "8 was read as 08:00." }))
      const { set } = yield* Effect.provide(toolsOf, services)
      const prepared = yield* set.prepare({ when: "every weekday at 8", text: "stretch" })
      const outcome = yield* prepared.run(context)
      assert.deepInclude(outcome, {
        status: "success",
        summary: "reminder 3 is set: weekdays at 08:00, next tomorrow at 08:00 (UTC). 8 was read as 08:00.",
        acted: "verified"
      })
      assert.deepStrictEqual(
        asked.map(({ input, tool_name }) => [tool_name, input]),
        [
          [
            "choir.plan.set",
            { when: "every weekday at 8", text: "stretch", untrusted: false, call_id: context.call_id }
          ]
        ]
      )
    })
  )

  it.effect("carry the label of what the lane has read", () =>
    Effect.gen(function* () {
      const { asked, services } = beside(true, success({ plan: LINE }), success({ plan: LINE }))
      const { cancel, set } = yield* Effect.provide(toolsOf, services)
      yield* Effect.flatMap(set.prepare({ when: "in 20 minutes", text: "stretch" }), ({ run }) => run(context))
      yield* Effect.flatMap(cancel.prepare({ plan_id: 3 }), ({ run }) => run(context))
      assert.deepInclude(asked[0]?.input, { untrusted: true, sources: ["web:example.org"] })
      assert.deepStrictEqual(asked[1]?.input, { plan_id: 3, untrusted: true })
    })
  )

  it.effect("pass on choird's refusal, and settle a call without an answer by asking again", () =>
    Effect.gen(function* () {
      const refusal: HostReply = { status: "error", output: { error: "there is no time in it" } }
      const { asked, services } = beside(false, refusal, undefined, success({ plan: LINE }))
      const { set } = yield* Effect.provide(toolsOf, services)
      const input = { when: "soon", text: "stretch" }
      const refused = yield* Effect.flatMap(set.prepare(input), ({ run }) => run(context))
      assert.deepInclude(refused, { status: "error", summary: "there is no time in it" })
      const lost = yield* Effect.flatMap(set.prepare(input), ({ run }) => run(context))
      assert.strictEqual(lost.acted, "unknown")
      const settle = set.settle ?? assert.fail("it cannot be settled")
      assert.deepInclude(yield* settle({ ...context, input }), { status: "success" })
      assert.deepStrictEqual(new Set(asked.map(({ call_id }) => call_id)), new Set([context.call_id]))
    })
  )

  it.effect("list the reminders with the sources of their words", () =>
    Effect.gen(function* () {
      const { services } = beside(false, success({ plans: [LINE], sources: ["web:example.org"] }))
      const { list } = yield* Effect.provide(toolsOf, services)
      const outcome = yield* Effect.flatMap(list.prepare({}), ({ run }) => run(context))
      assert.deepInclude(outcome, { summary: "1 reminder", sources: ["web:example.org"] })
    })
  )
})
