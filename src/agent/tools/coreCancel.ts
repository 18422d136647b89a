/** choir.core.cancel: ends a running job. */
import { Effect, Schema } from "effect"
import { JobName } from "#schema/Ids.ts"
import type { ControlTool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { decodeInput } from "./toolResult.ts"

const Input = Schema.Struct({
  job_name: JobName.annotate({ description: "The job's name, as it was started" }),
  reason: Schema.optionalKey(Schema.String.annotate({ description: "Why, in a few words" }))
})
const decode = decodeInput(Input)

export const coreCancel: ControlTool = {
  llm: llmView("choir.core.cancel", "Cancel a running core job. What it did so far stays.", Input),
  lanes: "edge",
  propose: (raw, call_id) =>
    Effect.map(decode(raw), ({ job_name, reason }) => ({
      type: "CancelCore",
      call_id,
      job_name,
      reason: reason ?? "cancelled by edge"
    }))
}
