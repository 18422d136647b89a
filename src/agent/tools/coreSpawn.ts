/** choir.core.spawn: starts a core job with the task that edge curated. */
import { Effect, Schema } from "effect"
import { ContextBundle, CoreSkill, ToolConstraints } from "#schema/Core.ts"
import { JobName } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import type { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { ControlTool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { decodeInput, invalidInput } from "./toolResult.ts"

/** Characters of a core job's task or of an instruction to it. */
export const CORE_TASK_CHARS_MAX = 100_000

/** A tool by the name that models see, or by the canonical one. */
const OfferedName = Schema.String.check(
  Schema.makeFilter((name) => toolNamed(name) !== undefined || "it is not the name of a tool, such as choir-fs-read")
)

const toolNamed = (name: string): ToolName | undefined => {
  const canonical = name.replaceAll("-", ".")
  return Schema.is(ToolName)(canonical) ? canonical : undefined
}

const Constraints = Schema.Struct({
  allowed_tools: Schema.optionalKey(
    Schema.Array(OfferedName).annotate({
      description: "Names of tools, such as choir-fs-read; without any all tools of a job are allowed"
    })
  ),
  time_budget_ms: ToolConstraints.fields.time_budget_ms
})

const Input = Schema.Struct({
  job_name: JobName.annotate({ description: "Short and descriptive, such as refactor-auth" }),
  task_spec: Schema.NonEmptyString.check(Schema.isMaxLength(CORE_TASK_CHARS_MAX)).annotate({
    description: "The whole task, clear and self-contained; the job sees nothing of this conversation"
  }),
  context_bundle: Schema.optionalKey(
    ContextBundle.annotate({ description: "What the job needs of this conversation" })
  ),
  tool_constraints: Schema.optionalKey(Constraints.annotate({ description: "What the job may use" })),
  output_schema: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({ description: "JSON Schema that the job's result must fit" })
  ),
  skill: Schema.optionalKey(
    CoreSkill.annotate({ description: "A skill that the job runs; it ends with the skill, whose output is its result" })
  ),
  verbosity: Schema.optionalKey(
    Schema.Literals(["quiet", "normal", "detailed"]).annotate({ description: "How much it reports. Default normal" })
  ),
  resume: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "true continues the job of this name that a model's error ended: it keeps what it knows, its limits and its constraints. task_spec then says how to continue; leave the other fields out"
    })
  )
})

/** What a resumed job keeps as it was started. */
const KEPT = ["context_bundle", "tool_constraints", "output_schema", "skill", "verbosity"] as const

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
      const { resume = false, ...input } = yield* decode(raw)
      const model = settings.current().config.core_llm
      if (resume) {
        const given = KEPT.filter((key) => input[key] !== undefined)
        if (given.length > 0)
          return yield* Effect.fail(
            invalidInput(`a resumed job keeps what it was started with: leave out ${given.join(", ")}`)
          )
        return { type: "ResumeCore", call_id, job_name: input.job_name, instruction: input.task_spec, model }
      }
      const { context_bundle, output_schema, skill, tool_constraints, verbosity, ...task } = input
      return {
        type: "Spawn",
        call_id,
        model,
        start: {
          ...task,
          context_bundle: context_bundle ?? { facts: [], excerpts: [], constraints: [] },
          tool_constraints: {
            allowed_tools: (tool_constraints?.allowed_tools ?? []).flatMap((name) => toolNamed(name) ?? []),
            time_budget_ms: tool_constraints?.time_budget_ms ?? 0
          },
          verbosity: verbosity ?? "normal",
          ...(output_schema === undefined ? {} : { output_schema }),
          ...(skill === undefined ? {} : { skill })
        }
      }
    })
  }
}
