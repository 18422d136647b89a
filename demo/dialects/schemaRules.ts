/** The checks that providers make of a tool's parameters: a JSON Schema, and one that describes an object. */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"

const TYPES = new Set<unknown>(["object", "array", "string", "number", "integer", "boolean", "null"])
/** Keys that no schema of parameters may have at its top. */
const NOT_AT_TOP = ["oneOf", "anyOf", "allOf", "enum", "not"] as const
/** Deeper schemas are left unread, so that none can exhaust the stack. */
const DEPTH_MAX = 64

const namedParts = (node: Keys, key: string): ReadonlyArray<readonly [string, unknown]> =>
  isObject(node[key]) ? Object.entries(node[key]).map(([name, part]) => [`${key}.${name}`, part] as const) : []

/** The schemas inside a schema, with their places. */
const partsOf = (node: Keys): ReadonlyArray<readonly [string, unknown]> => [
  ...["properties", "patternProperties", "definitions", "$defs"].flatMap((key) => namedParts(node, key)),
  ...["items", "additionalProperties", "not", "contains"].flatMap((key) =>
    node[key] === undefined || Array.isArray(node[key]) ? [] : [[key, node[key]] as const]
  ),
  ...["anyOf", "oneOf", "allOf", "prefixItems", "items"].flatMap((key) =>
    listOf(node[key]).map((part, index) => [`${key}[${index}]`, part] as const)
  )
]

const resolves = (root: Keys, pointer: string): boolean => {
  if (!pointer.startsWith("#")) return false
  let at: unknown = root
  for (const key of pointer.slice(1).split("/").slice(1)) {
    const name = decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return at !== undefined
}

const nodeProblem = (root: Keys, node: unknown, place: string, depth: number): string | undefined => {
  if (typeof node === "boolean") return undefined
  if (!isObject(node)) return `In context=(${place}), it is not an object or a boolean.`
  const types = node["type"] === undefined ? [] : [node["type"]].flat()
  if (!types.every((type) => TYPES.has(type)))
    return `In context=(${place}), ${JSON.stringify(node["type"])} is not valid under any of the given schemas.`
  if (types.includes("array") && node["items"] === undefined && node["prefixItems"] === undefined)
    return `In context=(${place}), array schema missing items.`
  const { $ref } = node
  if ($ref !== undefined && !(typeof $ref === "string" && resolves(root, $ref)))
    return `In context=(${place}), reference ${JSON.stringify($ref)} cannot be resolved.`
  if (depth > DEPTH_MAX) return undefined
  for (const [key, part] of partsOf(node)) {
    const problem = nodeProblem(root, part, place === "" ? key : `${place}.${key}`, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Why a provider would refuse these parameters of a function; `undefined` when it takes them. */
export const schemaRefusal = (parameters: unknown): string | undefined => {
  const type = isObject(parameters) ? parameters["type"] : undefined
  if (!isObject(parameters) || type !== "object")
    return `schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type ?? "None")}'.`
  const top = NOT_AT_TOP.find((key) => parameters[key] !== undefined)
  if (top !== undefined)
    return `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level, got '${top}'.`
  if (parameters["properties"] !== undefined && !isObject(parameters["properties"]))
    return "'properties' must be an object."
  return nodeProblem(parameters, parameters, "", 0)
}

const strictNodeProblem = (node: unknown, place: string, depth: number): string | undefined => {
  if (!isObject(node) || depth > DEPTH_MAX) return undefined
  if (isObject(node["properties"]) || node["type"] === "object") {
    if (node["additionalProperties"] !== false)
      return `In context=(${place}), 'additionalProperties' is required to be supplied and to be false.`
    const required = new Set(listOf(node["required"]))
    const missing = Object.keys(isObject(node["properties"]) ? node["properties"] : {}).find(
      (key) => !required.has(key)
    )
    if (missing !== undefined)
      return `In context=(${place}), 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`
  }
  for (const [key, part] of partsOf(node)) {
    const problem = strictNodeProblem(part, place === "" ? key : `${place}.${key}`, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Why a strict function may not have these parameters: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas */
export const strictSchemaRefusal = (parameters: unknown): string | undefined => strictNodeProblem(parameters, "", 0)
