/**
 * A skill: a state machine whose states say what the model is to do there, with which tools, and where it may go next.
 * What a schema cannot say of it, such as that each state can be reached, `src/shared/image/skillProblems.ts` checks.
 */
import { Effect, Schema } from "effect"
import { Assertions, Scope, SchemaRef, SkillContract } from "./SkillContract.ts"
import { SkillRegistryEntry } from "./SkillRegistryEntry.ts"
import { ToolNameInEitherForm } from "./Tool.ts"

/** A skill's name, and that of its file without `.json`. */
export const SkillName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9._-]{0,63}$/u, {
    message: "a skill name is 1 to 64 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit"
  })
).pipe(Schema.brand("SkillName"))
export type SkillName = typeof SkillName.Type

const word = (what: string) =>
  Schema.String.check(
    Schema.isPattern(/^[a-z][a-z0-9_-]{0,39}$/u, {
      message: `${what} starts with a-z, then up to 39 of a-z, 0-9, '_' and '-'`
    })
  )

/** The name of a state. */
export const SkillStateName = word("the name of a state")
/** The word with which a model leaves a state. */
export const SkillEvent = word("the event of a transition")

/** The word with which a model may end an interruptible skill in any state; no skill can give it another meaning. */
export const CANCEL_EVENT = "cancel"
/** Where a skill goes when its rules were broken too often in a state, if the state has such a transition. */
export const ERROR_EVENT = "error"

const none = <A>(): Effect.Effect<ReadonlyArray<A>> => Effect.succeed([])

/** Characters of a state's task: the prose of a SKILL.md is one. */
export const OBJECTIVE_CHARS_MAX = 20_000

export const SkillTransition = Schema.Struct({ on: SkillEvent, to: SkillStateName })
export type SkillTransition = typeof SkillTransition.Type

export const SkillState = Schema.Struct({
  /** The model's task here; every state that is not terminal needs one. */
  objective: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(OBJECTIVE_CHARS_MAX))),
  allowed_tools: Schema.Array(ToolNameInEitherForm)
    .check(Schema.isMaxLength(64))
    .pipe(Schema.withDecodingDefaultKey(none<string>())),
  transitions: Schema.Array(SkillTransition)
    .check(Schema.isMaxLength(16))
    .pipe(Schema.withDecodingDefaultKey(none<SkillTransition>())),
  /** The skill ends where it gets here. */
  terminal: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** The part of the contract's scope that is used here; absent is all of it. */
  state_read: Schema.optionalKey(Scope),
  state_write: Schema.optionalKey(Scope),
  /** Checked before the skill gets here, except by `error`. */
  assertions: Schema.optionalKey(Assertions)
})
export type SkillState = typeof SkillState.Type

/** A file `skills/<name>.json` of a global or agent repository. */
export const SkillSpec = Schema.Struct({
  name: SkillName,
  /** Models see it in their prompts, to know when the skill is of use; where there are too many skills, only its name. */
  description: Schema.NonEmptyString.check(Schema.isMaxLength(1024)),
  initial_state: SkillStateName,
  /** JSON Schema of its input, or the pin of one; absent takes any object. */
  input_schema: Schema.optionalKey(SchemaRef),
  /** JSON Schema of its output, or the pin of one; absent takes any object. */
  output_schema: Schema.optionalKey(SchemaRef),
  states: Schema.Record(SkillStateName, SkillState),
  /** Model calls after which it is ended as failed. */
  max_steps: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 200 })),
  /** Whether the model may end it halfway. A person always may. */
  interruptible: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  contract: Schema.optionalKey(SkillContract),
  registry: Schema.optionalKey(SkillRegistryEntry)
})
export type SkillSpec = typeof SkillSpec.Type

/** A state by its name; a record's inherited keys are none. */
export const skillState = ({ states }: SkillSpec, name: string): SkillState | undefined =>
  Object.hasOwn(states, name) ? (states as Readonly<Record<string, SkillState>>)[name] : undefined
