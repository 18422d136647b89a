/** A skill's entry of the registry: its version and tier, what begins it, the tools that it depends on, its script, and what proves its work. */
import { Effect, Schema } from "effect"
import { Assertion, Expectation, StateField } from "./SkillContract.ts"
import { ToolNameInEitherForm } from "./Tool.ts"

/** The kind of work that a skill is for. */
export const SkillTier = Schema.Literals(["pm", "task", "execution", "audit", "infrastructure", "integration"])
export type SkillTier = typeof SkillTier.Type

export const SkillVersion = Schema.String.check(
  Schema.isPattern(/^(?:0|[1-9]\d{0,3})(?:\.(?:0|[1-9]\d{0,3})){2}(?:-[0-9a-z][0-9a-z.-]{0,31})?$/u, {
    message: "a version is <major>.<minor>.<patch>, such as 1.0.0"
  })
)

const none = <A>(): Effect.Effect<ReadonlyArray<A>> => Effect.succeed([])

/**
 * `suggest` names the skill to the model where the trigger matches, `start` begins it. Untrusted text only ever suggests. The `match` of a schedule is
 * a time, such as `daily at 07:30`, and choird begins it then.
 */
export const SkillTrigger = Schema.Struct({
  kind: Schema.Literals(["keyword", "tool", "task_type", "schedule"]),
  match: Schema.NonEmptyString.check(Schema.isMaxLength(100)),
  mode: Schema.Literals(["suggest", "start"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("suggest" as const)))
})
export type SkillTrigger = typeof SkillTrigger.Type

/** Values for a tool's input. A text `${field}` is the value of that STATE field, and within a longer text its text. */
const Params = Schema.Record(Schema.String, Schema.Json)

/** A place in a tool's output, separated by dots; `.` is all of it. */
const OutputPath = Schema.String.check(
  Schema.isPattern(/^(?:\.|[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){0,8})$/u, {
    message: "a place in an output is ., or up to 9 keys and indexes separated by dots"
  })
)

/** One call of a script, and the STATE fields that take parts of its output. */
export const WorkflowStep = Schema.Struct({
  step: Schema.NonEmptyString.check(Schema.isMaxLength(200)),
  tool: ToolNameInEitherForm,
  params: Params.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  writes: Schema.Record(StateField, OutputPath).pipe(Schema.withDecodingDefaultKey(Effect.succeed({})))
})
export type WorkflowStep = typeof WorkflowStep.Type

/** Steps of one script; each is a state of the machine that it becomes. */
export const WORKFLOW_STEPS_MAX = 16

/** A call whose output has to be as expected. */
export const VerificationCall = Schema.Struct({
  tool: ToolNameInEitherForm,
  params: Params.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  expect: Expectation
})
export type VerificationCall = typeof VerificationCall.Type

/** A check of the finished work that no model can talk away. */
export const Verification = Schema.Union([Assertion, VerificationCall])
export type Verification = typeof Verification.Type

export const SkillRegistryEntry = Schema.Struct({
  version: SkillVersion,
  tier: SkillTier,
  triggers: Schema.Array(SkillTrigger)
    .check(Schema.isMaxLength(16))
    .pipe(Schema.withDecodingDefaultKey(none<SkillTrigger>())),
  /** Tools without which the skill is of no use. */
  required_tools: Schema.Array(ToolNameInEitherForm)
    .check(Schema.isMaxLength(64))
    .pipe(Schema.withDecodingDefaultKey(none<string>())),
  /** The script of a skill that the runtime runs. */
  workflow: Schema.Array(WorkflowStep)
    .check(Schema.isMaxLength(WORKFLOW_STEPS_MAX))
    .pipe(Schema.withDecodingDefaultKey(none<typeof WorkflowStep.Encoded>())),
  verification: Schema.Array(Verification)
    .check(Schema.isMaxLength(8))
    .pipe(Schema.withDecodingDefaultKey(none<typeof Verification.Encoded>()))
})
export type SkillRegistryEntry = typeof SkillRegistryEntry.Type
