/** The built-in skill that leads to a proposal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { bookOf } from "../support/skills.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, ticking } from "../support/testing/TestAgent.ts"

const MANIFEST = {
  llm: { name: "words.count", description: "Count words.", input_schema: { type: "object" } },
  runtime: { exec_path: "words.count", effect: "none" }
}
const PROPOSAL = { manifest: MANIFEST, reason: "to count words" }

const PROPOSE = ["choir.propose", { kind: "tool", proposal: PROPOSAL }] as const

const step = (messages: ReadonlyArray<Message>) => {
  const told = messages.findLast(({ content }) => /You are in the step|No skill is running:/u.test(content ?? ""))
  return /You are in the step (\S+) of the skill tool-builder/u.exec(told?.content ?? "")?.[1]
}

/** Proposes too early once, and then as the skill says. */
const makeScript = (): Script => {
  let isHasty = true
  return (messages) =>
    Effect.sync(() => {
      const at = step(messages)
      const hasProposed = messages.some(({ content, role }) => role === "tool" && content?.includes("was submitted"))
      if (at === undefined)
        return messages.some(({ role }) => role === "tool")
          ? says("proposed")
          : calls(["choir.skill.start", { skill: "tool-builder" }])
      if (at === "design" && isHasty) {
        isHasty = false
        return calls(PROPOSE)
      }
      return at === "propose" && !hasProposed
        ? calls(PROPOSE)
        : calls(["choir.skill.transition", { on: "complete", writes: { request: at, manifest: {}, problems: [] } }])
    })
}

describe("tool-builder", () => {
  it.effect("lets a proposal through in its last step alone, where a person is asked, once (R55)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script: makeScript(), skills: bookOf(...BUILT_IN_SKILLS) }))
      yield* plane.say("I want a tool that counts words")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "SkillTransitionCommitted").map(({ payload: { ended, to } }) => ended ?? to),
        ["understand", "design", "validate", "propose", "completed"]
      )
      const refused = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.status === "rejected")
      assert.lengthOf(refused, 1)
      assert.deepStrictEqual(refused[0]?.payload.allowed?.tools, ["choir-memory-query", "choir-skill-transition"])
      assert.lengthOf(plane.approvals, 1)
      assert.strictEqual(plane.approvals[0]?.status, "pending")
    })
  )
})
