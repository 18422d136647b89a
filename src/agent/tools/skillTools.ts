/** The tools of skills: one puts a lane into a skill, the other leaves the present step. */
import { Effect, Schema } from "effect"
import { SKILL_START, SKILL_TRANSITION } from "#src/agent/arbiter/decideSkills.ts"
import { type SkillBook, SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { SKILLS_DESCRIBED_MAX } from "#src/agent/model/prompt/skillPrompt.ts"
import { skillList } from "./skillList.ts"
import { type AnyTool, type ControlTool, decodeInput } from "./Tool.ts"

/** UTF-16 units of a skill's name or a transition's event as a model writes them. */
const SKILL_NAME_CHARS_MAX = 128

/** Characters of an input schema that are in the tool's description, which is part of every request. */
const SCHEMA_CHARS_MAX = 2000
/** Characters of all of them. */
const SCHEMAS_CHARS_MAX = 16_000

/** The members of a schema that is too long to be shown whole. */
const membersOf = (schema: Schema.Json): string => {
  const properties =
    typeof schema === "object" && schema !== null && "properties" in schema ? schema["properties"] : null
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties).join(", ") : ""
  return `an object with ${names === "" ? "members" : names}; input that does not fit is reported when the skill begins`.slice(
    0,
    SCHEMA_CHARS_MAX
  )
}

/** The inputs of the skills; models see no more of a skill before it begins. */
const inputs = (skills: SkillBook): string => {
  let room = SCHEMAS_CHARS_MAX
  const shown = [...skills.values()].map(({ input_schema, name }) => {
    const whole = input_schema === undefined ? "none" : JSON.stringify(input_schema)
    const text = whole.length <= Math.min(SCHEMA_CHARS_MAX, room) ? whole : membersOf(input_schema ?? {})
    const told = text.length <= room ? text : "an object"
    room -= Math.min(room, told.length)
    return `${name}: ${told}`
  })
  return shown.join("; ")
}

const inputOf = (skills: SkillBook) =>
  Schema.Struct({
    skill: Schema.NonEmptyString.check(Schema.isMaxLength(SKILL_NAME_CHARS_MAX)).annotate({
      description: "Its name"
    }),
    input: Schema.optionalKey(
      Schema.Record(Schema.String, Schema.Json).annotate({
        description:
          skills.size > SKILLS_DESCRIBED_MAX
            ? "As the list of skills says"
            : `By the skill's JSON Schema. ${inputs(skills)}`
      })
    )
  })

/** choir.skill.start: puts the calling lane into a skill. */
export const skillStart = (skills: SkillBook): ControlTool => {
  const Input = inputOf(skills)
  const decode = decodeInput(Input)
  return {
    llm: llmView(SKILL_START, "Begin a skill: one step at a time, each with its own tools.", Input),
    lanes: "both",
    command: (raw, call_id, lane) =>
      Effect.map(decode(raw), (input) => ({ type: "StartSkill", lane, call_id, ...input }))
  }
}

/** Parts of a result that a judge is to look at. */
const JUDGE_BLOCKS_MAX = 64

const TransitionInput = Schema.Struct({
  on: Schema.NonEmptyString.check(Schema.isMaxLength(SKILL_NAME_CHARS_MAX)).annotate({
    description: "A transition of the present step"
  }),
  output: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({
      description: "What the step found, which is all that later steps see; in the last one, the skill's output"
    })
  ),
  writes: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({ description: "Values of STATE fields" })
  ),
  confidence: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
      description: "How sure you are, 0 to 1"
    })
  ),
  judge_blocks: Schema.optionalKey(
    Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String })).check(Schema.isMaxLength(JUDGE_BLOCKS_MAX))
  )
})

/**
 * The input as models see it: with what a skill of theirs takes. A result goes into `writes` or `output`, by whether the skill has a STATE;
 * the steps that take `judge_blocks` tell of them.
 */
const offered = (skills: SkillBook): Schema.Top => {
  const { confidence, on, output, writes } = TransitionInput.fields
  const contracts = [...skills.values()].map(({ contract }) => contract)
  const isJudged = contracts.some((contract) => contract?.confidence_threshold !== undefined)
  return Schema.Struct({
    on,
    ...(contracts.includes(undefined) ? { output } : {}),
    ...(contracts.some((contract) => contract !== undefined) ? { writes } : {}),
    ...(isJudged ? { confidence } : {})
  })
}

/** choir.skill.transition: leaves the present step of the lane's skill. */
const skillTransition = (skills: SkillBook): ControlTool => {
  const decode = decodeInput(TransitionInput)
  return {
    llm: llmView(SKILL_TRANSITION, "Leave the present step of the skill.", offered(skills)),
    lanes: "both",
    command: (raw, call_id, lane) =>
      Effect.map(decode(raw), (input) => ({ type: "MoveSkill", lane, call_id, ...input }))
  }
}

/** The tools of an agent with these skills; the list only where choir.skill.start does not describe their inputs. */
export const skillTools = Effect.map(SkillRegistry, (skills): ReadonlyArray<AnyTool> =>
  skills.size === 0
    ? []
    : [...(skills.size > SKILLS_DESCRIBED_MAX ? [skillList(skills)] : []), skillStart(skills), skillTransition(skills)]
)
