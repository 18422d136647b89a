/** What of a skill stands in each request: bounded, however much its steps came to. */
import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent } from "#schema/Event.ts"
import { skillStep } from "#src/agent/model/prompt/skillPrompt.ts"
import { skillStart } from "#src/agent/tools/skillTools.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import { bookOf, skillSpec } from "../../../support/skills.ts"
import { EVERY_TOOL } from "../../../support/offered.ts"

const spec = skillSpec({})
const state = spec.initial_state
const LONG = { text: "x".repeat(60_000) }

/** A skill of which so many steps came to something, each to `output`. */
const prompt = (count: number, output: unknown, input: unknown = { goal: "small" }) => {
  const fields = Array.from({ length: count }, (_, index) => ({ rev: index + 2, name: `step-${index}` }))
  const skill = { name: spec.name, state, step: 1, started_rev: 1, entered_rev: 1, fields } as unknown as ActiveSkill
  const event = (payload: object) => ({ event_type: "SkillTransitionCommitted", payload }) as unknown as ChoirEvent
  const text = skillStep(skill, bookOf(spec), (rev) => event(rev === 1 ? { input } : { output }), EVERY_TOOL) ?? ""
  return { text, context: JSON.parse(/Context: (\{.*\})/u.exec(text)?.[1] ?? "null") }
}

describe("the prompt of a skill's step", () => {
  it("shows what is small whole", () => {
    assert.deepStrictEqual(prompt(2, { found: 1 }).context, {
      input: { goal: "small" },
      steps: { "step-0": { found: 1 }, "step-1": { found: 1 } }
    })
  })

  it("cuts what is long, says where the rest is, and stays within its limit over 32 steps", () => {
    const { context, text } = prompt(32, LONG)
    assert.isBelow(text.length, 60_000)
    assert.strictEqual(Object.keys(context.steps).length, 32)
    assert.match(context.steps["step-31"].note, /revision 33 of the log.*choir-memory-query/u)
  })

  it("cuts a long input, and one long result that alone would fit", () => {
    const { context } = prompt(1, { text: "y".repeat(17_000) }, { goal: "z".repeat(17_000) })
    assert.match(context.input.note, /revision 1 of the log/u)
    assert.match(context.steps["step-0"].note, /revision 2 of the log/u)
  })

  it("keeps the newest results whole where not all of them fit", () => {
    const { context } = prompt(10, { text: "y".repeat(10_000) })
    assert.strictEqual(context.steps["step-9"].text.length, 10_000)
    assert.isString(context.steps["step-0"].note)
  })
})

describe("the description of choir.skill.start", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 400 }, (_, index) => [`member_${index}`, { type: "string", description: "z".repeat(200) }])
  )
  const skills = Array.from({ length: 12 }, (_, index) => ({
    ...skillSpec({}),
    name: `skill-${index}` as never,
    input_schema: { type: "object", ...(index === 0 ? {} : { properties }) }
  }))

  it("holds no more of the schemas of 12 skills than its limit, and the short ones whole", () => {
    const text = JSON.stringify(skillStart(bookOf(...skills)).llm)
    assert.isBelow(text.length, 24_000)
    assert.include(text, "skill-0: {")
    assert.include(text, "skill-11: ")
    assert.include(text, "member_0, member_1")
  })

  it("names the members of one long schema, though all of it would fit", () => {
    const input_schema = { type: "object", properties: { goal: { type: "string", description: "z".repeat(3000) } } }
    const text = JSON.stringify(skillStart(bookOf({ ...skillSpec({}), input_schema })).llm)
    assert.isBelow(text.length, 2500)
    assert.include(text, "an object with goal")
  })
})
