/** choir.core.inject: appends an instruction to a running job; nothing is rewritten and no budget is reset. */
import { Effect, Schema } from "effect"
import { JobName } from "#schema/Ids.ts"
import type { ControlTool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { decodeInput } from "./toolResult.ts"
import { CORE_TASK_CHARS_MAX } from "./coreSpawn.ts"

const Input = Schema.Struct({
  job_name: JobName.annotate({ description: "The job's name, as it was started" }),
  content: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_TASK_CHARS_MAX)).annotate({
    description: "The instruction, or the user's answer, clear without this conversation"
  })
})
const decode = decodeInput(Input)

export const coreInject: ControlTool = {
  llm: llmView("choir.core.inject", "Give a running core job a further instruction.", Input),
  lanes: "edge",
  propose: (raw, call_id) => Effect.map(decode(raw), (input) => ({ type: "InjectCore", call_id, ...input }))
}
