/**
 * The input schema of a tool: the rules that providers and the agent's own check need, with each mistake by its path. One rule for
 * the agent, which refuses to start with another schema, and the build of an image.
 */
import { Iterable, Result, type Schema } from "effect"
import type { Problem } from "#src/shared/config/configProblems.ts"
import { inputDecoder } from "./jsonSchema.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"

type JsonSchemaObject = Readonly<Record<string, unknown>>

/** Deeper than any schema that a person writes; a check that never ends checks nothing. */
const SCHEMA_DEPTH_MAX = 32
/** Problems of one schema that are named. */
const SCHEMA_PROBLEMS_MAX = 20

type Kind =
  | "any"
  | "boolean"
  | "number"
  | "pattern"
  | "schema"
  | "schema map"
  | "schema or schemas"
  | "schemas"
  | "text"
  | "texts"
  | "type"
  | "values"

/** The keywords of JSON Schema 2020-12 and draft 07, and what each holds. */
const KEYWORDS_OF: Readonly<Record<Kind, string>> = {
  text: "$anchor $comment $dynamicAnchor $dynamicRef $id $ref $schema contentEncoding contentMediaType description format title",
  "schema map": "$defs definitions dependentSchemas patternProperties properties",
  any: "$vocabulary const default dependencies dependentRequired",
  schema:
    "additionalItems additionalProperties contains contentSchema else if not propertyNames then unevaluatedItems unevaluatedProperties",
  schemas: "allOf anyOf oneOf prefixItems",
  boolean: "deprecated readOnly uniqueItems writeOnly",
  values: "enum examples",
  number:
    "exclusiveMaximum exclusiveMinimum maxContains maxItems maxLength maxProperties maximum minContains minItems minLength minProperties minimum multipleOf",
  "schema or schemas": "items",
  pattern: "pattern",
  texts: "required",
  type: "type"
}
const KEYWORDS: ReadonlyMap<string, Kind> = new Map(
  Object.entries(KEYWORDS_OF).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind as Kind] as const))
)

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]

/** Providers refuse a tool whose top level says more than that it is an object. */
const NOT_AT_TOP = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"]

/** Keywords for which the agent has no check, so that no input of a model could be let through. */
const UNCHECKED = new Set([
  "$dynamicRef",
  "contains",
  "dependentRequired",
  "dependentSchemas",
  "if",
  "not",
  "unevaluatedItems",
  "unevaluatedProperties"
])

const isObject = (value: unknown): value is JsonSchemaObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isRegExp = (value: string) => Result.isSuccess(Result.try(() => new RegExp(value, "u")))

const under = (path: string, key: string | number) => (path === "" ? String(key) : `${path}.${key}`)

const unknownKeyword = (key: string): string => {
  const meant = nearestWord(key, KEYWORDS.keys())
  return `${JSON.stringify(key)} is not a keyword of JSON Schema${meant === undefined ? "" : `; did you mean ${meant}?`}`
}

/** `not: {}` lets nothing through, and `if` alone everything; both can be checked. */
const isUnchecked = (schema: JsonSchemaObject, key: string): boolean => {
  if (!UNCHECKED.has(key)) return false
  if (key === "if") return Object.hasOwn(schema, "then") || Object.hasOwn(schema, "else")
  const value = schema[key]
  return key !== "not" || !isObject(value) || Object.keys(value).length > 0
}

const typeProblem = (value: unknown): string | undefined => {
  const names: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const wrong = names.find((name) => typeof name !== "string" || !TYPES.includes(name))
  if (names.length > 0 && wrong === undefined) return undefined
  const meant = typeof wrong === "string" ? nearestWord(wrong, TYPES) : undefined
  const known = `it must be one of ${TYPES.join(", ")}, or a list of them`
  return meant === undefined ? known : `${JSON.stringify(wrong)} is not a type; did you mean ${meant}?`
}

/** The problem of a keyword's value itself, without the schemas in it. */
const valueProblem = (kind: Kind, value: unknown): string | undefined => {
  const must = (fits: boolean, what: string) => (fits ? undefined : `it must be ${what}`)
  const isSchema = isObject(value) || typeof value === "boolean"
  switch (kind) {
    case "any":
      return undefined
    case "boolean":
      return must(typeof value === "boolean", "true or false")
    case "number":
      return must(typeof value === "number", "a number")
    case "pattern":
      return must(typeof value === "string" && isRegExp(value), "a regular expression")
    case "schema":
      return must(isSchema, "a schema: an object, true or false")
    case "schema map":
      return must(isObject(value), "an object of schemas by name")
    case "schema or schemas":
      return must(isSchema || Array.isArray(value), "a schema, or a list of schemas")
    case "schemas":
      return must(Array.isArray(value) && value.length > 0, "a list of schemas")
    case "text":
      return must(typeof value === "string", "a string")
    case "texts":
      return must(Array.isArray(value) && value.every((each) => typeof each === "string"), "a list of strings")
    case "type":
      return typeProblem(value)
    case "values":
      return must(Array.isArray(value), "a list")
  }
}

/** The schemas that a keyword's value holds, with their paths. */
const schemasIn = (kind: Kind, value: unknown, path: string): ReadonlyArray<readonly [string, unknown]> => {
  switch (kind) {
    case "schema":
      return [[path, value]]
    case "schema map":
      return isObject(value) ? Object.entries(value).map(([key, each]) => [under(path, key), each]) : []
    case "schema or schemas":
    case "schemas":
      return Array.isArray(value) ? value.map((each, index) => [under(path, index), each]) : [[path, value]]
    default:
      return []
  }
}

/** Providers refuse a list that does not say what it holds. */
const listProblem = (schema: JsonSchemaObject, path: string): Problem | undefined =>
  [schema["type"]].flat().includes("array") && !Object.hasOwn(schema, "items") && !Object.hasOwn(schema, "prefixItems")
    ? { path: under(path, "items"), reason: 'say what the list holds, such as {"type": "string"}' }
    : undefined

/** One by one: to find what was meant by each of many thousand wrong keywords takes a second. */
function* keywordProblems(schema: unknown, path: string, depth: number): Generator<Problem> {
  if (typeof schema === "boolean") return
  if (!isObject(schema)) return yield { path, reason: "it must be a schema: an object, true or false" }
  if (depth > SCHEMA_DEPTH_MAX) return yield { path, reason: `schemas may be nested ${SCHEMA_DEPTH_MAX} levels deep` }
  for (const [key, value] of Object.entries(schema)) {
    // Keywords of a program's own begin with x- by custom, and check nothing.
    if (key.startsWith("x-")) continue
    const at = under(path, key)
    const kind = KEYWORDS.get(key)
    const reason =
      kind === undefined
        ? unknownKeyword(key)
        : isUnchecked(schema, key)
          ? `the agent cannot check "${key}": leave it out`
          : valueProblem(kind, value)
    if (reason !== undefined) yield { path: at, reason }
    else if (kind !== undefined)
      for (const [inner, each] of schemasIn(kind, value, at)) yield* keywordProblems(each, inner, depth + 1)
  }
  const list = listProblem(schema, path)
  if (list !== undefined) yield list
}

/** Why a provider would refuse these as the parameters of a tool; `undefined` when it would not. */
export const parametersProblem = (schema: unknown): Problem | undefined => {
  if (!isObject(schema)) return { path: "", reason: "it must be a JSON Schema, which is an object" }
  if (schema["type"] !== "object")
    return { path: "type", reason: 'write "object"; a tool without input has {"type": "object", "properties": {}}' }
  const surplus = NOT_AT_TOP.find((key) => Object.hasOwn(schema, key))
  return surplus === undefined
    ? undefined
    : { path: surplus, reason: "providers refuse it at the top level; use it inside properties" }
}

/** A decoder's message without the places that it names in its own spelling. */
const AT = /\s*\bat ((?:\[(?:"(?:[^"\\]|\\.)*"|\d+)\])+)/gu

/** All that keeps a schema from being the input of a tool, by path within it; none when the tool can be offered and its input checked. */
export const toolSchemaProblems = (schema: JsonSchemaObject): ReadonlyArray<Problem> => {
  const parameters = parametersProblem(schema)
  const found = [
    ...(parameters === undefined ? [] : [parameters]),
    ...[...Iterable.take(keywordProblems(schema, "", 0), SCHEMA_PROBLEMS_MAX)].filter(
      ({ path }) => path !== parameters?.path
    )
  ]
  if (found.length > 0) return found
  const decoder = inputDecoder(schema as Readonly<Record<string, Schema.Json>>, "apply")
  return Result.isSuccess(decoder)
    ? []
    : [{ path: "", reason: decoder.failure.replaceAll(AT, "").replaceAll(/\s+/gu, " ").trim() }]
}
