/** Tools as a model sees them, and answer tools, which exist in one call, run nothing and give its answer a structure. */
import { JsonSchema, Result, Schema } from "effect"
import type { BuiltInToolName } from "#schema/BuiltInTool.ts"
import { type ToolLlmView, ToolName } from "#schema/Tool.ts"
import type { ModelToolCall } from "#schema/Event.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"

const NO_INPUT = { type: "object", properties: {} }

/** Rules that the tool itself checks, with words for the model, on other keys too; in every prompt they would only take tokens. */
const CHECKED: ReadonlySet<string> = new Set([
  "additionalProperties",
  "format",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "pattern"
])

type Fragment = Readonly<Record<string, Schema.Json>>

const isFragment = (value: unknown): value is Fragment =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A schema without what the tool checks. */
const slim = (schema: Schema.Json): Schema.Json => {
  if (!isFragment(schema)) return schema
  const kept = Object.entries(schema).filter(([key]) => !CHECKED.has(key))
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (key === "properties" && isFragment(value))
        return [key, Object.fromEntries(Object.entries(value).map(([name, part]) => [name, slim(part)]))]
      if (key === "items") return [key, slim(value)]
      return [key, key === "anyOf" && Array.isArray(value) ? value.map((part) => slim(part)) : value]
    })
  )
}

/** An input as JSON Schema of an object. Effect's schema of an empty struct says only what it is not, which no provider takes. */
const inputSchema = (input: Schema.Top): ToolLlmView["input_schema"] => {
  const { definitions, schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(input, { onExcessProperty: "error" })
  )
  if (Object.hasOwn(schema, "not")) return NO_INPUT
  if (schema["type"] !== "object") throw new Error("the parameters of a tool are not an object")
  const slimmed = slim(schema as Fragment) as Fragment
  return Object.keys(definitions).length === 0 ? slimmed : { ...slimmed, definitions }
}

/** The model's view of a tool by any name, such as one that a skill defines. */
export const viewOf = (name: string, description: string, input: Schema.Top): ToolLlmView => ({
  name: ToolName.make(name),
  description,
  input_schema: inputSchema(input)
})

/** The model's view of a built-in tool, which has its row in the table. */
export const llmView = (name: BuiltInToolName, description: string, input: Schema.Top): ToolLlmView =>
  viewOf(name, description, input)

export interface AnswerTool<A> {
  readonly view: ToolLlmView
  readonly tool: Tool
  /** The model's answers, one for each call of the tool whose arguments fit. */
  answers(calls: ReadonlyArray<Pick<ModelToolCall, "input" | "name">>): ReadonlyArray<A>
}

export const answerTool = <S extends Schema.Decoder<unknown>>(
  name: string,
  purpose: string,
  schema: S,
  offered: Schema.Top = schema
): AnswerTool<S["Type"]> => {
  const view = viewOf(name, purpose, offered)
  const { description, input_schema, name: canonical } = view
  const wireName = canonical.replaceAll(".", "-")
  const decode = Schema.decodeUnknownResult(schema)
  return {
    view,
    tool: { name: wireName, description, parameters: input_schema },
    answers: (calls) =>
      calls.flatMap(({ input, name }) => {
        // A model says the wire name; a name that it made up is kept as it is.
        const decoded = name.replaceAll(".", "-") === wireName ? decode(input) : undefined
        return decoded === undefined || Result.isFailure(decoded) ? [] : [decoded.success]
      })
  }
}
