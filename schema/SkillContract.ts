/**
 * A skill's contract: what it does and does not do, the STATE that it reads and writes, and how its result is checked. What a schema cannot
 * say of it, such as that each scope names a declared field, `src/shared/image/contractProblems.ts` checks.
 */
import { Effect, Schema } from "effect"
import { Capabilities, type Capability } from "./Capability.ts"
import { ResourceName } from "./Ids.ts"

/** The worker of a skill: a model, or for `deterministic` and `tool` the runtime without a model, for `tool` by exactly one call. */
export const ExecutionClass = Schema.Literals(["deterministic", "probabilistic", "tool"])
export type ExecutionClass = typeof ExecutionClass.Type

/** A file `schemas/<name>@<major>.<minor>.json`. A minor version only adds to the one before. */
export const SchemaPin = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9_-]{0,63}@(?:0|[1-9]\d{0,3})\.(?:0|[1-9]\d{0,3})$/u, {
    message: "a pinned schema is <name>@<major>.<minor>, such as todo-flag@1.0"
  })
).pipe(Schema.brand("SchemaPin"))
export type SchemaPin = typeof SchemaPin.Type

export const JsonSchemaObject = Schema.Record(Schema.String, Schema.Json)
export type JsonSchemaObject = typeof JsonSchemaObject.Type

/** A JSON Schema, or the pin of one. In an agent's skills every pin has given way to its schema. */
export const SchemaRef = Schema.Union([SchemaPin, JsonSchemaObject])
export type SchemaRef = typeof SchemaRef.Type

/** No value fits a pin whose schema was not put in its place. */
const UNKNOWN_PIN: JsonSchemaObject = { enum: [] }

export const schemaOf = (ref: SchemaRef): JsonSchemaObject => (typeof ref === "string" ? UNKNOWN_PIN : ref)

/** A field of a skill's STATE. */
export const StateField = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9_]{0,39}$/u, { message: "a STATE field is a-z, then up to 39 of a-z, 0-9 and _" })
)

/** Fields of one STATE. */
export const STATE_FIELDS_MAX = 64

export const Scope = Schema.Array(StateField).check(Schema.isMaxLength(STATE_FIELDS_MAX), Schema.isUnique())

/** A place in STATE: a field, then keys and indexes separated by dots. `*` is every element of a list. */
export const StatePath = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9_]{0,39}(?:\.(?:\*|[A-Za-z0-9_-]{1,64})){0,8}$/u, {
    message: "a path is a STATE field, then up to 8 keys, indexes or * separated by dots"
  })
)

export const AssertionOp = Schema.Literals(["==", "!=", "<", "<=", ">", ">=", "in", "matches", "exists", "count"])
export type AssertionOp = typeof AssertionOp.Type

/** Characters of a glob of `matches`. */
export const GLOB_CHARS_MAX = 256

const Count = Schema.Union([
  Schema.Natural,
  Schema.Struct({ min: Schema.optionalKey(Schema.Natural), max: Schema.optionalKey(Schema.Natural) })
])
const isCount = Schema.is(Count)

const valueProblem = (op: AssertionOp, value: Schema.Json | undefined): string | undefined => {
  switch (op) {
    case "<":
    case "<=":
    case ">":
    case ">=":
      return typeof value === "number" ? undefined : `${op} compares with a number`
    case "in":
      return Array.isArray(value) ? undefined : "in compares with a list of values"
    case "matches":
      return typeof value === "string" && value.length <= GLOB_CHARS_MAX
        ? undefined
        : `matches compares with a text of at most ${GLOB_CHARS_MAX} characters, in which * and ? are wildcards`
    case "exists":
      return value === undefined || typeof value === "boolean" ? undefined : "exists takes true, false or nothing"
    case "count":
      return isCount(value) ? undefined : 'count compares with a number of elements, or { "min", "max" }'
    default:
      return value === undefined ? `${op} compares with a value` : undefined
  }
}

/** The comparison of a value, without the place that it comes from. */
const comparison = { op: AssertionOp, value: Schema.optionalKey(Schema.Json) }

const ofItsOp = Schema.makeFilter(({ op, value }: { readonly op: AssertionOp; readonly value?: Schema.Json }) => {
  const issue = valueProblem(op, value)
  return issue === undefined ? undefined : { path: ["value"], issue }
})

/**
 * A check of STATE in a closed language. `==` and `!=` compare whole values, `<` to `>=` numbers, `in` looks for the value in a list, `matches`
 * compares a whole text with a glob, `exists` asks whether the place is there, `count` counts the elements of a list.
 */
export const Assertion = Schema.Struct({
  /** In words, for people and for the model that has to keep to it. */
  statement: Schema.NonEmptyString.check(Schema.isMaxLength(200)),
  path: StatePath,
  ...comparison
}).check(ofItsOp)
export type Assertion = typeof Assertion.Type

/** The same for the output of a tool; `.` is all of it. */
export const Expectation = Schema.Struct({
  path: Schema.String.check(
    Schema.isPattern(/^(?:\.|(?:\*|[A-Za-z0-9_-]{1,64})(?:\.(?:\*|[A-Za-z0-9_-]{1,64})){0,8})$/u, {
      message: "a path is ., or up to 9 keys, indexes or * separated by dots"
    })
  ).pipe(Schema.withDecodingDefaultKey(Effect.succeed("."))),
  ...comparison
}).check(ofItsOp)
export type Expectation = typeof Expectation.Type

export const ASSERTIONS_MAX = 32
export const Assertions = Schema.Array(Assertion).check(Schema.isMaxLength(ASSERTIONS_MAX))

/** Bytes of one example, as JSON. */
export const ANCHOR_BYTES_MAX = 8192
export const ANCHORS_MAX = 8

/** A worked example for the judge: an input of the skill, and a good result of it. */
export const GoldenAnchor = Schema.Struct({ input: Schema.Json, output: Schema.Json }).check(
  Schema.makeFilter((anchor) =>
    Buffer.byteLength(JSON.stringify(anchor)) <= ANCHOR_BYTES_MAX
      ? undefined
      : `an example has at most ${ANCHOR_BYTES_MAX} bytes`
  )
)
export type GoldenAnchor = typeof GoldenAnchor.Type

const Unit = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** `model` is a model that the agent is bound to; without it another than the worker's is taken where there is one. `sources` are the fields that a result must rest on. */
export const Judge = Schema.Struct({
  model: Schema.optionalKey(ResourceName),
  sources: Scope.pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
})

const Responsibility = Schema.NonEmptyString.check(Schema.isMaxLength(500))

/** Attempts after the first that a result below the threshold gets. */
export const RETRIES_DEFAULT = 2
export const RETRIES_MAX = 5

const scope = Scope.pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))

const ContractShape = Schema.Struct({
  execution_class: ExecutionClass,
  does: Responsibility,
  does_not: Responsibility,
  state: Schema.Record(StateField, Schema.Struct({ schema: SchemaRef }))
    .check(Schema.isMaxProperties(STATE_FIELDS_MAX))
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  state_read: scope,
  state_write: scope,
  /** Checked before the skill ends well. */
  assertions: Assertions.pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  /** A result of at least this confidence is taken as it is; others are judged, and have to reach it there. */
  confidence_threshold: Schema.optionalKey(Unit),
  retries: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: RETRIES_MAX }))),
  golden_anchors: Schema.Array(GoldenAnchor)
    .check(Schema.isMaxLength(ANCHORS_MAX))
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  /** Everything that its tools can do; absent is nothing. */
  capabilities: Capabilities.pipe(Schema.withDecodingDefaultKey(Effect.succeed<ReadonlyArray<Capability>>([]))),
  judge: Schema.optionalKey(Judge)
})

/** The work of the runtime needs no second opinion: nothing of it can come out another way. */
const classProblems = ({
  confidence_threshold,
  execution_class,
  golden_anchors,
  judge,
  retries
}: typeof ContractShape.Type) => {
  if (execution_class === "probabilistic")
    return judge !== undefined && confidence_threshold === undefined
      ? [{ path: ["judge"], issue: "a judge needs a confidence_threshold to judge by" }]
      : []
  const never = (key: string, is: boolean) =>
    is ? [{ path: [key], issue: `a skill of the class ${execution_class} has none: leave it out` }] : []
  return [
    ...never("confidence_threshold", confidence_threshold !== undefined),
    ...never("retries", (retries ?? 0) > 0),
    ...never("golden_anchors", golden_anchors.length > 0),
    ...never("judge", judge !== undefined)
  ]
}

export const SkillContract = ContractShape.check(Schema.makeFilter(classProblems))
export type SkillContract = typeof SkillContract.Type

/** Attempts that a result gets after the first one failed. */
export const retriesOf = ({ execution_class, retries }: SkillContract): number =>
  execution_class === "probabilistic" ? (retries ?? RETRIES_DEFAULT) : 0
