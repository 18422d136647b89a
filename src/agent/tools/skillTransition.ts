/** choir.skill.transition: leaves the present step of the lane's skill. */
import { Effect, Schema } from "effect"
import { SKILL_TRANSITION } from "#src/agent/arbiter/decideSkills.ts"
import type { ControlTool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { decodeInput } from "./toolResult.ts"
import { SKILL_NAME_CHARS_MAX } from "./skillStart.ts"

const Input = Schema.Struct({
  on: Schema.NonEmptyString.check(Schema.isMaxLength(SKILL_NAME_CHARS_MAX)).annotate({
    description: "One of the transitions of the present step"
  }),
  output: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({
      description:
        "What the step came to. Later steps are shown it, and not what you did here; in the last step it is the skill's output"
    })
  )
})
const decode = decodeInput(Input)

export const skillTransition: ControlTool = {
  llm: llmView(SKILL_TRANSITION, "Leave the present step of the skill, once its other calls have ended.", Input),
  lanes: "both",
  propose: (raw, call_id, lane) => Effect.map(decode(raw), (input) => ({ type: "MoveSkill", lane, call_id, ...input }))
}
