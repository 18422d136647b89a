/**
 * The files `schemas/<name>@<major>.<minor>.json` of a repository: JSON Schemas that skills pin by name and version. A pin never changes its
 * meaning, and a minor version only adds to the one before, so that what fits the older one is read by the newer one.
 */
import { Result, Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { JsonSchemaObject, SchemaPin, type SchemaRef } from "#schema/SkillContract.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { depthProblem } from "./boundedJson.ts"
import { schemaProblem } from "./jsonSchema.ts"

/** Bytes of one such file. */
export const PINNED_SCHEMA_BYTES_MAX = 64 * 1024
/** Such files of one repository. */
export const PINNED_SCHEMAS_MAX = 256

/** Schemas by their pins. */
export type PinnedSchemas = ReadonlyMap<string, JsonSchemaObject>

const isPin = Schema.is(SchemaPin)
const decode = Schema.decodeUnknownResult(Schema.fromJsonString(JsonSchemaObject))

/** The schema of a file's text, or what is wrong with it. `stem` is the file's name without `.json`, which is the pin. */
export const readPinnedSchema = (
  stem: string,
  text: string
): Result.Result<JsonSchemaObject, ReadonlyArray<string>> => {
  if (!isPin(stem)) return Result.fail(["name the file <name>@<major>.<minor>.json, such as todo-flag@1.0.json"])
  if (Buffer.byteLength(text) > PINNED_SCHEMA_BYTES_MAX)
    return Result.fail([`larger than ${PINNED_SCHEMA_BYTES_MAX} bytes`])
  const decoded = decode(text)
  if (Result.isFailure(decoded)) return Result.fail(["it is not a JSON Schema: write an object"])
  const problem = depthProblem(decoded.success) ?? schemaProblem(decoded.success)
  return problem === undefined ? Result.succeed(decoded.success) : Result.fail([`it cannot be checked: ${problem}`])
}

const isObject = (value: unknown): value is JsonSchemaObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const membersOf = (schema: JsonSchemaObject): JsonSchemaObject => {
  const { properties } = schema
  return isObject(properties) ? properties : {}
}

const requiredOf = ({ required }: JsonSchemaObject): ReadonlyArray<string> =>
  Array.isArray(required) ? required.map(String).sort() : []

const isSame = (one: unknown, other: unknown): boolean => canonicalJson(one ?? null) === canonicalJson(other ?? null)

/** Keys of a schema that say nothing about values. */
const WORDS: ReadonlySet<string> = new Set(["$id", "$comment", "title", "description", "examples", "default"])

/** The change of a schema that a minor version may not make, by its place; `undefined` where it only adds optional properties. */
export const additiveProblem = (older: JsonSchemaObject, newer: JsonSchemaObject, at = ""): string | undefined => {
  const place = at === "" ? "it" : at
  if (!isSame(requiredOf(older), requiredOf(newer))) return `${place} has different required properties`
  for (const key of new Set([...Object.keys(older), ...Object.keys(newer)])) {
    if (WORDS.has(key) || key === "required" || key === "properties" || key === "items") continue
    if (!isSame(older[key], newer[key])) return `${place} has a different ${key}`
  }
  const { items: before } = older
  const { items: after } = newer
  if (isObject(before) && isObject(after)) {
    const problem = additiveProblem(before, after, at === "" ? "items" : `${at}.items`)
    if (problem !== undefined) return problem
  } else if (!isSame(before, after)) return `${place} has different items`
  const added = membersOf(newer)
  for (const [name, was] of Object.entries(membersOf(older))) {
    const path = at === "" ? name : `${at}.${name}`
    const is = Object.hasOwn(added, name) ? added[name] : undefined
    if (is === undefined) return `${path} is gone`
    const problem =
      isObject(was) && isObject(is)
        ? additiveProblem(was, is, path)
        : isSame(was, is)
          ? undefined
          : `${path} is a different schema`
    if (problem !== undefined) return problem
  }
  return undefined
}

const PARTS = /^(.+)@(\d+)\.(\d+)$/u

/** The pins whose schema takes away from the version before it, with the reason. */
export const versionProblems = (schemas: PinnedSchemas): ReadonlyArray<readonly [pin: string, reason: string]> => {
  const lines = new Map<string, Array<{ readonly minor: number; readonly pin: string }>>()
  for (const pin of schemas.keys()) {
    const [, name = "", major = "", minor = ""] = PARTS.exec(pin) ?? []
    const line = `${name}@${major}`
    lines.set(line, [...(lines.get(line) ?? []), { minor: Number(minor), pin }])
  }
  return [...lines.values()].flatMap((line) => {
    const pins = line.toSorted((a, b) => a.minor - b.minor).map(({ pin }) => pin)
    return pins.flatMap((pin, index) => {
      const before = index === 0 ? undefined : pins[index - 1]
      const problem =
        before === undefined ? undefined : additiveProblem(schemas.get(before) ?? {}, schemas.get(pin) ?? {})
      return problem === undefined
        ? []
        : [[pin, `a minor version only adds to ${before}, but here ${problem}: raise the major version`] as const]
    })
  })
}

/** The places of a skill that may hold a pin, by their paths. */
const places = ({ contract, input_schema, output_schema }: SkillSpec): ReadonlyArray<readonly [string, SchemaRef]> => [
  ...(input_schema === undefined ? [] : [[`["input_schema"]`, input_schema] as const]),
  ...(output_schema === undefined ? [] : [[`["output_schema"]`, output_schema] as const]),
  ...Object.entries(contract?.state ?? {}).map(
    ([field, { schema }]) => [`["contract"]["state"]["${field}"]["schema"]`, schema] as const
  )
]

/** The pins of a skill that no file defines. */
export const pinProblems = (spec: SkillSpec, schemas: PinnedSchemas): ReadonlyArray<string> =>
  places(spec).flatMap(([at, ref]) => {
    if (typeof ref !== "string" || schemas.has(ref)) return []
    const meant = nearestWord(ref, [...schemas.keys()])
    return [
      `at ${at}: there is no schema ${ref}: add schemas/${ref}.json${meant === undefined ? "" : `, or write ${meant}`}`
    ]
  })

/** The skill with each pin's schema in its place; a pin that is not known stays. */
export const withPinned = (spec: SkillSpec, schemas: PinnedSchemas): SkillSpec => {
  const put = (ref: SchemaRef): SchemaRef => (typeof ref === "string" ? (schemas.get(ref) ?? ref) : ref)
  const { contract, input_schema, output_schema } = spec
  return {
    ...spec,
    ...(input_schema === undefined ? {} : { input_schema: put(input_schema) }),
    ...(output_schema === undefined ? {} : { output_schema: put(output_schema) }),
    ...(contract === undefined
      ? {}
      : {
          contract: {
            ...contract,
            state: Object.fromEntries(
              Object.entries(contract.state).map(([field, { schema }]) => [field, { schema: put(schema) }])
            )
          }
        })
  }
}
