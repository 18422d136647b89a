/** A skill's step bounds what its jobs may do, so that a skill leaves its tools by no job. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { byLane, job } from "../support/laneScripts.ts"
import { bookOf, skillSpec } from "../support/skills.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Said } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

describe("a job that a skill's step starts", () => {
  const narrow = skillSpec({
    name: "narrow",
    initial_state: "only",
    states: {
      only: {
        objective: "Start a job.",
        allowed_tools: ["choir.core.spawn", "choir.skill.start", "mem.read"],
        transitions: [{ on: "complete", to: "done" }]
      },
      done: { terminal: true }
    }
  })

  const inNarrow = Effect.fnUntraced(function* (
    said: ReadonlyArray<Said>,
    more: Readonly<Record<string, Schema.Json>> = {}
  ) {
    yield* ticking
    const plane = yield* makeMemoryControlPlane
    const ran: Array<string> = []
    const tools = ["mem.read", "ws.write"].map((name) =>
      testTool(name, () => Effect.sync(() => (ran.push(name), { status: "success", summary: name })))
    )
    const script = byLane(
      [
        calls(["choir.skill.start", { skill: "narrow", input: {} }]),
        calls(job("a", more)),
        calls(["choir.skill.transition", { on: "complete" }]),
        says("done"),
        says("ended"),
        says("ended")
      ],
      { a: said }
    )
    yield* Effect.forkScoped(runAgent({ plane, script, tools, skills: bookOf(narrow, skillSpec()) }))
    yield* plane.say("go")
    yield* plane.until((events, state) => spoken(events).length > 0 && quiet(state))
    return { plane, ran }
  })

  it.effect("uses no tool that the step does not allow, and starts no skill", () =>
    Effect.gen(function* () {
      const { plane, ran } = yield* inNarrow([
        calls(["ws.write", {}]),
        calls(["choir.skill.start", { skill: "tidy", input: {} }]),
        calls(["mem.read", {}]),
        says("done")
      ])
      assert.deepStrictEqual(ran, ["mem.read"])
      const [started] = ofType(plane.events, "CoreStarted")
      assert.strictEqual(started?.payload.in_skill, "narrow")
      assert.lengthOf(
        ofType(plane.events, "SkillTransitionCommitted").filter(({ lane }) => lane !== "edge"),
        0
      )
    })
  )

  it.effect("is not started with tools that the step does not allow", () =>
    Effect.gen(function* () {
      const { plane } = yield* inNarrow([], { tool_constraints: { allowed_tools: ["ws-write"] } })
      assert.lengthOf(ofType(plane.events, "CoreStarted"), 0)
      const refused = ofType(plane.events, "ToolResultCommitted").find(({ payload }) => payload.status === "rejected")
      assert.match(
        refused?.payload.summary ?? "",
        /allows none of these tools; it allows choir-core-spawn, choir-skill-start, mem-read/u
      )
    })
  )
})
