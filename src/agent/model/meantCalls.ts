/**
 * The calls of an answer as they are meant (D64), before anything of them is stored: the tool whose name is written otherwise, and arguments that
 * are written as another kind of value than the tool's schema has. What fits is never changed, and what stays wrong is refused by its tool.
 */
import { Option, Schema } from "effect"
import { NAME_CHARS_MAX } from "#schema/Event.ts"
import { type AnsweredCall, limitedCalls, MODEL_TOOL_CALLS_MAX } from "#src/shared/model/Answer.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { plainToolName } from "#src/shared/image/plainToolName.ts"

/** Levels of arguments that are looked at; deeper ones stay as they are. */
const LEVELS_MAX = 8
/** Characters of a text that may be a number, a flag, a list or an object. */
const TEXT_CHARS_MAX = 64 * 1024

/** The prefixes that dialects put in front of the names of tools: OpenAI's and Kimi's namespace, Gemini's, and that of MCP with its server. */
const PREFIX = /^(?:(?:(?:google|functions?|tools?|default_api|default_tools|api)[.:/])+|mcp__(?:[a-z0-9-]+__)?)/iu
/** The suffixes that they leave behind them: control tokens of gpt-oss, and Kimi's number of the call. */
const SUFFIX = /(?:<\||<｜)[^]*$|(?::index)?:\d{1,4}$|\(\)$/u

const bare = (name: string): string => name.trim().replace(SUFFIX, "").replace(PREFIX, "")

/** The offered name that is written otherwise, if it is the only one. */
export const meantName = (name: string, offered: ReadonlyArray<string>): string => {
  const wire = name.replaceAll(".", "-")
  if (offered.includes(wire)) return name
  const wanted = new Set([plainToolName(name), plainToolName(bare(name))])
  const near = offered.filter((one) => wanted.has(plainToolName(one)))
  return near.length === 1 ? (near[0] ?? name) : name
}

type Json = Schema.Json
type Keys = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Keys => typeof value === "object" && value !== null && !Array.isArray(value)

const KINDS = ["array", "boolean", "integer", "null", "number", "object", "string"] as const
type Kind = (typeof KINDS)[number]

const kindsOfValues = (values: ReadonlyArray<unknown>): ReadonlyArray<Kind> =>
  values.map((value) => (value === null ? "null" : Array.isArray(value) ? "array" : (typeof value as Kind)))

/** The kinds of values that a schema takes; all of them where it does not say. */
const kindsOf = (schema: unknown): ReadonlySet<Kind> => {
  if (!isObject(schema)) return new Set(KINDS)
  const { anyOf, enum: values, oneOf, type } = schema
  if ("const" in schema) return new Set(kindsOfValues([schema["const"]]))
  if (Array.isArray(values)) return new Set(kindsOfValues(values))
  const branches = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []))
  if (branches.length > 0) return new Set(branches.flatMap((branch) => [...kindsOf(branch)]))
  const types: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
  const known = KINDS.filter((kind) => types.includes(kind))
  return new Set(known.length === 0 ? KINDS : known)
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/u

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A text as the number, flag, list or object that its schema wants. */
const valueOf = (written: string, kinds: ReadonlySet<Kind>): Json => {
  if (kinds.has("string") || written.length > TEXT_CHARS_MAX) return written
  const text = written.trim()
  if ((kinds.has("number") || kinds.has("integer")) && NUMBER.test(text)) {
    const number = Number(text)
    // A number that is rounded would be another one.
    const isExact = Math.abs(number) <= Number.MAX_SAFE_INTEGER
    if (isExact && (kinds.has("number") || Number.isInteger(number))) return number
  }
  if (kinds.has("boolean") && /^(?:true|false)$/iu.test(text)) return text.toLowerCase() === "true"
  const value = /^[[{]/u.test(text) ? parsed(text) : undefined
  const isWanted = (kinds.has("array") && Array.isArray(value)) || (kinds.has("object") && isObject(value))
  return isWanted ? (value as Json) : written
}

/** The one schema of objects, or of lists, among those that a value may have. */
const schemaFor = (schema: Keys, kind: "array" | "object"): Keys => {
  const branches = [schema["anyOf"], schema["oneOf"]].flatMap((list) =>
    Array.isArray(list) ? (list as ReadonlyArray<unknown>) : []
  )
  const fitting = branches.filter((branch) => isObject(branch) && kindsOf(branch).has(kind))
  const [only] = fitting
  return branches.length > 0 && fitting.length === 1 && isObject(only) ? only : schema
}

const objectOf = (value: Readonly<Record<string, Json>>, schema: Keys, levels: number): Json => {
  const own = schemaFor(schema, "object")
  const properties = isObject(own["properties"]) ? own["properties"] : {}
  const required: ReadonlyArray<unknown> = Array.isArray(own["required"]) ? own["required"] : []
  const isAbsent = (key: string, inner: Json): boolean =>
    inner === null && Object.hasOwn(properties, key) && !required.includes(key) && !kindsOf(properties[key]).has("null")
  // Not by assignment: a key `__proto__` is a key like any other.
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) =>
      isAbsent(key, inner)
        ? []
        : [[key, Object.hasOwn(properties, key) ? meantValue(inner, properties[key], levels - 1) : inner] as const]
    )
  )
}

const meantValue = (written: Json, schema: unknown, levels: number): Json => {
  if (!isObject(schema) || levels === 0) return written
  const value = typeof written === "string" ? valueOf(written, kindsOf(schema)) : written
  if (Array.isArray(value)) {
    const { items } = schemaFor(schema, "array")
    return isObject(items) ? (value as ReadonlyArray<Json>).map((inner) => meantValue(inner, items, levels - 1)) : value
  }
  return isObject(value) ? objectOf(value, schema, levels) : value
}

/** The arguments of a call as its tool's schema has them: `null` of an optional one is absence, and a text is what its schema wants instead. */
export const meantInput = (input: Json, parameters: unknown): Json =>
  isObject(input) ? meantValue(input, parameters, LEVELS_MAX) : input

/** A call of several at once, as OpenAI's models are trained to make it; nobody offers a tool of that name. */
const PARALLEL = "multi_tool_use.parallel"
const decodeParallel = Schema.decodeUnknownOption(
  Schema.Struct({
    tool_uses: Schema.Array(
      Schema.Struct({ recipient_name: Schema.String, parameters: Schema.optionalKey(Schema.NullOr(Schema.Json)) })
    )
  })
)

const apart = (call: AnsweredCall): ReadonlyArray<AnsweredCall> => {
  if (call.name !== PARALLEL || call.refused !== undefined) return [call]
  return Option.match(decodeParallel(call.input), {
    onNone: () => [call],
    onSome: ({ tool_uses }) =>
      tool_uses.map(({ parameters, recipient_name }) => ({
        name: recipient_name.slice(0, NAME_CHARS_MAX),
        input: parameters ?? {}
      }))
  })
}

/** Why a call must not run, with those behind it that have no result of their own. */
const whyRefused = ({ left_out = 0, refused }: AnsweredCall): string | undefined => {
  if (refused === undefined || left_out === 0) return refused
  const behind = left_out === 1 ? "The call behind it was" : `The ${left_out} calls behind it were`
  return `${refused}. ${behind} not run either and can have no result: make ${left_out === 1 ? "it" : "them"} again too, no more than ${MODEL_TOOL_CALLS_MAX} calls in an answer`
}

/** The calls of an answer by what was offered. */
export const meantCalls = (
  calls: ReadonlyArray<AnsweredCall>,
  tools: ReadonlyArray<Tool>
): ReadonlyArray<AnsweredCall> => {
  const offered = tools.map(({ name }) => name)
  return limitedCalls(calls.flatMap(apart)).map((call) => {
    const name = meantName(call.name, offered)
    const tool = tools.find((tool) => tool.name === name.replaceAll(".", "-"))
    const refused = whyRefused(call)
    return {
      name,
      input: tool === undefined ? call.input : meantInput(call.input, tool.parameters),
      ...(refused === undefined ? {} : { refused })
    }
  })
}
