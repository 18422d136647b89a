import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { exportLosses, skillMarkdown } from "#src/choirctl/render/skillMarkdown.ts"
import { readSkillFolder } from "#src/shared/image/skillFolder.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { carefulChange } from "../../support/skills.ts"
import { contractSpec, summarize, todoFlagger } from "../../support/contracts.ts"

describe("an exported skill", () => {
  it("is a folder of the standard with each step, its tools and its ways, which Choir reads as one task", () => {
    const text = skillMarkdown(carefulChange)
    for (const words of [
      "## understand",
      "## validate",
      '- revise: go to "plan"',
      "- complete: end (done)",
      "choir.exec"
    ])
      assert.include(text, words)
    const read = Result.getOrThrow(readSkillFolder("careful_change", text))
    assert.include(JSON.stringify(read.states), "Make the planned changes and no others.")
    assert.isTrue(Result.isSuccess(readSkill("careful_change", JSON.stringify(read))))
  })

  it("keeps the contract of a skill that a model runs, for each of the starter's", () => {
    const folder = join(packageFolder, "docker/starter/skills")
    const specs = readdirSync(folder).map((file) =>
      Result.getOrThrow(readSkill(file.replace(".json", ""), readFileSync(join(folder, file), "utf8")))
    )
    assert.isAbove(specs.length, 12)
    for (const spec of [...specs, contractSpec(summarize)]) {
      const draft = Result.getOrThrowWith(
        readSkillFolder(spec.name, skillMarkdown(spec)),
        (why) => new Error(`${spec.name}: ${why.join()}`)
      )
      const again = Result.getOrThrowWith(
        readSkill(spec.name, JSON.stringify(draft)),
        (why) => new Error(`${spec.name}: ${why.join()}`)
      )
      assert.deepStrictEqual(again.contract, spec.contract, spec.name)
      assert.deepStrictEqual(again.registry, spec.registry, spec.name)
      assert.deepStrictEqual(again.input_schema, spec.input_schema, spec.name)
      assert.deepStrictEqual(again.output_schema, spec.output_schema, spec.name)
    }
  })

  it("is the whole script of a skill that the runtime runs", () => {
    const spec = Result.getOrThrow(readSkill("todo-flagger", JSON.stringify(todoFlagger)))
    const again = Result.flatMap(readSkillFolder("todo-flagger", skillMarkdown(spec)), (draft) =>
      readSkill("todo-flagger", JSON.stringify(draft))
    )
    assert.deepStrictEqual(Result.getOrThrow(again), spec)
    assert.deepStrictEqual(exportLosses(spec), [])
  })

  it("says what a SKILL.md cannot hold of it", () => {
    assert.deepStrictEqual(exportLosses({ ...carefulChange, interruptible: false }), [
      "states: its 4 have their own tools and transitions; a SKILL.md is one state that may use all the tools",
      "max_steps: 30, which a SKILL.md cannot express",
      "interruptible: a SKILL.md can always be cancelled by a model"
    ])
    const long = { type: "object", description: "x".repeat(9000) }
    assert.match(exportLosses({ ...carefulChange, output_schema: long })[0] ?? "", /front matter is larger than 8192/u)
  })
})
