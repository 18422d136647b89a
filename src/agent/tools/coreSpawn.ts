/** choir.core.spawn: starts a core job with the task that edge curated (spec 12.7). */
import { Effect, Schema } from "effect"
import { ContextBundle, CoreSkill, ToolConstraints } from "#schema/Core.ts"
import { JobName } from "#schema/Ids.ts"
import { CORE_TASK_CHARS_MAX } from "#src/shared/limits.ts"
import type { AgentSettings } from "#src/agent/AgentSettings.ts"
import type { ControlTool } from "./ControlTool.ts"
import { decodeInput, llmView } from "./toolInput.ts"

const Input = Schema.Struct({
  job_name: JobName.annotate({ description: "Short and descriptive, such as refactor-auth" }),
  task_spec: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_TASK_CHARS_MAX)).annotate({
    description: "The whole task, clear and self-contained; the job sees nothing of this conversation"
  }),
  context_bundle: Schema.optionalKey(ContextBundle),
  tool_constraints: Schema.optionalKey(ToolConstraints),
  output_schema: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({ description: "JSON Schema that the job's result must fit" })
  ),
  skill: Schema.optionalKey(
    CoreSkill.annotate({ description: "A skill that the job runs; it ends with the skill, whose output is its result" })
  ),
  verbosity: Schema.optionalKey(Schema.Literals(["quiet", "normal", "detailed"]))
})

export const coreSpawn = (settings: AgentSettings["Service"]): ControlTool => {
  const decode = decodeInput(Input)
  return {
    llm: llmView(
      "choir.core.spawn",
      "Start a core job in the background. The result says only that it was started; its outcome is reported later.",
      Input
    ),
    lanes: "edge",
    propose: Effect.fn("coreSpawn.propose")(function* (raw, call_id) {
      const { context_bundle, output_schema, skill, tool_constraints, verbosity, ...task } = yield* decode(raw)
      return {
        type: "Spawn",
        call_id,
        model: settings.current().config.core_llm,
        start: {
          ...task,
          context_bundle: context_bundle ?? { facts: [], excerpts: [], constraints: [] },
          tool_constraints: tool_constraints ?? { allowed_tools: [], time_budget_ms: 0 },
          verbosity: verbosity ?? "normal",
          ...(output_schema === undefined ? {} : { output_schema }),
          ...(skill === undefined ? {} : { skill })
        }
      }
    })
  }
}
