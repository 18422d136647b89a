/** A model that answers each report with another job cannot use up a session's tokens by one message. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { job } from "../support/laneScripts.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, ticking } from "../support/testing/TestAgent.ts"

describe("one message", () => {
  it.effect("leads to a bounded number of requests, although each report starts another job", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let requests = 0
      const script: Script = (messages) =>
        Effect.sync(() => {
          requests++
          const isAsked = messages.at(-1)?.role !== "tool"
          return isCore(messages) ? says("done") : isAsked ? calls(job(`j${requests}`)) : says("on it goes")
        })
      const config = agentConfig({ message_max_steps: 30 })
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* plane.say("go")
      yield* plane.until((events, state) => events.length > 0 && quiet(state))
      assert.isAtMost(requests, 60)
      const words = spoken(plane.events).map(({ payload }) => payload.text ?? "")
      assert.match(
        words.at(-1) ?? "",
        /The job j\d+ ended.*I stopped after 30 steps for one message \(budgets\.message_max_steps\)/su
      )
      const before = requests
      yield* plane.say("again")
      yield* plane.until((events, state) => ofType(events, "UserMsg").length === 2 && quiet(state))
      assert.isAbove(requests, before + 1)
    })
  )
})
