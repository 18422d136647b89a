/** choir.skill.start: puts the calling lane into a skill (spec 10.2). */
import { Effect, Schema } from "effect"
import { SKILL_NAME_CHARS_MAX } from "#src/shared/limits.ts"
import { SKILL_START } from "#src/agent/decideSkills.ts"
import type { SkillBook } from "#src/agent/SkillRegistry.ts"
import type { ControlTool } from "./ControlTool.ts"
import { decodeInput, llmView } from "./toolInput.ts"

/** What each skill is to be given; models see no more of a skill before it begins. */
const inputs = (skills: SkillBook): string =>
  [...skills.values()]
    .map(({ input_schema, name }) => `${name}: ${input_schema === undefined ? "none" : JSON.stringify(input_schema)}`)
    .join("; ")

const inputOf = (skills: SkillBook) =>
  Schema.Struct({
    skill: Schema.NonEmptyString.check(Schema.isMaxLength(SKILL_NAME_CHARS_MAX)).annotate({
      description: "The name of the skill"
    }),
    input: Schema.optionalKey(
      Schema.Record(Schema.String, Schema.Json).annotate({
        description: `What the skill is to be given, by its JSON Schema. ${inputs(skills)}`
      })
    )
  })

export const skillStart = (skills: SkillBook): ControlTool => {
  const Input = inputOf(skills)
  const decode = decodeInput(Input)
  return {
    llm: llmView(
      SKILL_START,
      "Begin a skill: from then on you are told one step at a time, with the tools of that step. One skill at a time.",
      Input
    ),
    lanes: "both",
    propose: (raw, call_id, lane) =>
      Effect.map(decode(raw), (input) => ({ type: "StartSkill", lane, call_id, ...input }))
  }
}
