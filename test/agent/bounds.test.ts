/** The bounds of a job's calls, with everything real but the model. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { byLane, job } from "../support/laneScripts.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

const exclusive = [LockRequest.make({ resource: "workspace", mode: "X" })]

describe("a job's calls", () => {
  it.effect("does not let a job repeat two calls in turns", () =>
    Effect.gen(function* () {
      yield* ticking
      for (const together of [false, true]) {
        const plane = yield* makeMemoryControlPlane
        let started = 0
        let step = 0
        const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "same" }))
        const both = [
          ["mem.read", { n: 0 }],
          ["mem.read", { n: 1 }]
        ] as const
        const script: Script = (messages) =>
          Effect.sync(() => {
            if (isCore(messages)) return together ? calls(...both) : calls(both[step++ % 2] ?? both[0])
            return started++ === 0 ? calls(job("a")) : says("fine")
          })
        yield* Effect.forkScoped(runAgent({ plane, script, tools: [read] }))
        yield* plane.say("go")
        yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
        assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "stuck")
        assert.isAtMost(ofType(plane.events, "ToolCallCommitted").length, 11)
      }
    })
  )

  it.effect("ends a job that asks for a call beyond its limit, after exactly that many calls (R24, R25)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let runs = 0
      const read = testTool("mem.read", () => Effect.sync(() => ({ status: "success", summary: `${runs++}` }) as const))
      const script = byLane([calls(job("a")), says("started"), says("ended")], {
        a: [
          calls(["mem.read", { n: 1 }], ["mem.read", { n: 2 }]),
          calls(["mem.read", { n: 3 }], ["mem.read", { n: 4 }], ["mem.read", { n: 5 }])
        ]
      })
      yield* Effect.forkScoped(
        runAgent({ plane, script, tools: [read], config: agentConfig({ per_job_max_tool_calls: 3 }) })
      )
      yield* plane.say("go")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const [ended] = ofType(plane.events, "CoreStopped")
      assert.deepStrictEqual(
        [runs, ended?.payload.outcome, ended?.payload.summary],
        [3, "budget", "the job's limit of 3 tool calls is reached"]
      )
    })
  )

  it.effect("keeps an approved call of edge until the jobs end that started meanwhile", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const sent: Array<string> = []
      const tools = [
        testTool(
          "out.send",
          ({ call_id }) => Effect.sync(() => (sent.push(call_id), { status: "success", summary: "sent" })),
          {
            effect: "external",
            locks: exclusive
          }
        ),
        testTool(
          "pause",
          () => Effect.as(Effect.sleep("1 minute"), { status: "success", summary: "waited" } as const),
          {
            effect: "none"
          }
        )
      ]
      const config = { ...agentConfig(), approvals: { timeout_ms: 1_800_000, confirm_external: "always" as const } }
      const asks = (messages: ReadonlyArray<Message>) => messages.findLast(({ role }) => role === "user")?.content ?? ""
      const core = inOrder(calls(["pause", {}]), says("done"))
      const script: Script = (messages, offered) => {
        if (isCore(messages)) return core(messages, offered)
        if (messages.at(-1)?.role === "tool") return Effect.succeed(says("done"))
        return Effect.succeed(
          asks(messages) === "send it"
            ? calls(["out.send", {}])
            : asks(messages) === "work"
              ? calls(job("a"))
              : says("told")
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script, tools, config }))
      yield* plane.say("send it")
      yield* plane.until(() => plane.approvals.length === 1)
      yield* plane.say("work")
      yield* plane.until((events, state) => state.cores.size === 1 && spoken(events).length === 1)
      yield* plane.decide(plane.approvals[0]!.approval_id, "approved")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      assert.lengthOf(sent, 1)
      const [stopped] = ofType(plane.events, "CoreStopped")
      const granted = ofType(plane.events, "ToolCallCommitted").find(({ payload }) => payload.approval_id !== undefined)
      assert.isAbove(granted?.rev ?? 0, stopped?.rev ?? Infinity)
    })
  )
})
