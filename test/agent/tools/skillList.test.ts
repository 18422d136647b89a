import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CallId, EDGE } from "#schema/Ids.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { skillList as describedSkills } from "#src/agent/model/prompt/skillPrompt.ts"
import { foundSkills, skillList } from "#src/agent/tools/skillList.ts"
import { skillTools } from "#src/agent/tools/skillTools.ts"
import { bookOf, skillSpec } from "../../support/skills.ts"
import { EVERY_TOOL } from "../../support/offered.ts"

const many = (count: number) =>
  bookOf(
    ...Array.from({ length: count }, (_, index) =>
      skillSpec({
        name: `skill-${index}`,
        description: index === 7 ? "Turn notes into minutes." : "Put things in order."
      })
    )
  )
const toolsOf = (count: number) =>
  Effect.runSync(Effect.provideService(skillTools, SkillRegistry, many(count))).map(({ llm }) => llm)
const namesOf = (count: number): ReadonlyArray<string> => toolsOf(count).map(({ name }) => name)

describe("an agent with many skills", () => {
  it("is told their names alone where the descriptions have no room, and has a tool that describes them", () => {
    assert.notInclude(namesOf(12), "choir.skill.list")
    assert.include(namesOf(13), "choir.skill.list")
    assert.include(describedSkills(many(12), EVERY_TOOL), "skill-7: Turn notes into minutes.")
    assert.include(describedSkills(many(64), EVERY_TOOL), "skill-7: Turn notes into minutes.")
    const text = describedSkills(many(150), EVERY_TOOL)
    assert.notInclude(text, "Turn notes")
    assert.include(text, "skill-63")
    assert.isBelow(text.length, 1300)
    assert.isBelow(JSON.stringify(toolsOf(64)).length, 4000)
  })

  it("finds the skill whose words a task has, the best first, and everything without words", () => {
    assert.deepStrictEqual(
      foundSkills(many(13), { query: "Please turn my notes into minutes" }).map(({ name }): string => name),
      ["skill-7"]
    )
    assert.lengthOf(foundSkills(many(13), {}), 13)
    assert.lengthOf(foundSkills(many(13), { tier: "audit" }), 0)
  })

  it.effect("reads the input of a skill where few fit, and how many more there are", () =>
    Effect.gen(function* () {
      const tool = skillList(many(30))
      const ask = (input: object) =>
        Effect.flatMap(tool.prepare(input, { call_id: CallId.make("c"), lane: EDGE } as never), ({ run }) =>
          run({} as never)
        )
      const one = JSON.stringify(yield* ask({ query: "minutes" }))
      assert.include(one, '"input":')
      const all = yield* ask({})
      assert.include(JSON.stringify(all), '"more":20')
      assert.notInclude(JSON.stringify(all), '"input":')
    })
  )
})
