/** A person ends a skill of edge that no turn is open in. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SignalId } from "#schema/Ids.ts"
import { turnToStop } from "#src/shared/session/turns.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, ticking } from "../support/testing/TestAgent.ts"
import { bookOf, skillSpec } from "../support/skills.ts"

/** Begins the skill once, and says whether it is in it. */
const script: Script = (messages) =>
  Effect.sync(() => {
    const told = messages.findLast(({ content }) => /You are in the step|No skill is running:/u.test(content ?? ""))
    if (told?.content?.includes("You are in the step") === true) return says("which one?")
    return messages.some(({ role }) => role === "tool")
      ? says("free again")
      : calls(["choir.skill.start", { skill: "tidy", input: {} }])
  })

describe("a skill of edge", () => {
  it.effect("is ended by a person between turns, whatever it says of interrupts, and the order is answered once", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const skills = bookOf(skillSpec({ interruptible: false }))
      yield* Effect.forkScoped(runAgent({ plane, script, skills }))
      yield* plane.say("begin")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      const turn = turnToStop(plane.state(), undefined)
      if (turn === undefined) return assert.fail("there is nothing to stop")
      const order = { type: "StopTurn", signal_id: SignalId.make("901"), turn } as const
      yield* plane.push(order)
      yield* plane.push(order)
      yield* plane.until((_, state) => state.edge.skill === undefined)
      assert.strictEqual(ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload.ended, "cancelled")
      yield* plane.say("and now?")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "AgentMessage").map(({ payload }) => payload.text),
        ["which one?", "Stopped. The skill tidy ended.", "free again"]
      )
      assert.deepStrictEqual(
        ofType(plane.events, "Cancelled").map(({ payload }) => [payload.signal_id, payload.turn]),
        [[SignalId.make("901"), 0]]
      )
    })
  )
})
