/**
 * choir.core.report: a job tells how it goes, or asks the user something (CoreEvent). The call itself is the record: edge is shown
 * the newest in its prompts, people see it in the list of jobs, and a question opens a report turn.
 */
import { Effect, Schema } from "effect"
import { CoreReport } from "#schema/Core.ts"
import type { Tool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { decodeInput } from "./toolResult.ts"

/** A tool that only asks the control plane or the fold. */
export const CONTROL_TIMEOUT_MS = 20_000

const Input = Schema.Struct({
  ...CoreReport.fields,
  kind: CoreReport.fields.kind.annotate({ description: "need_info asks the user; the others tell how it goes" }),
  text: CoreReport.fields.text.annotate({ description: "What to tell or to ask, short" })
})
const decode = decodeInput(Input)

export const coreReport: Tool = {
  llm: llmView(
    "choir.core.report",
    "Tell how the task goes (plan, progress, partial_result), or ask the user (need_info): the answer comes as a further instruction.",
    Input
  ),
  effect: "none",
  lanes: "core",
  readOnly: true,
  prepare: (raw) =>
    Effect.map(decode(raw), ({ kind }) => ({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: () =>
        Effect.succeed({
          status: "success",
          summary: kind === "need_info" ? "the user is being asked" : `${kind} reported`
        })
    }))
}
