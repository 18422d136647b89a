/** A tool as a model is shown it. */
import { JsonSchema, Schema } from "effect"
import { type ToolLlmView, ToolName } from "#schema/Tool.ts"

const NO_INPUT = { type: "object", properties: {}, additionalProperties: false }

/** An input as JSON Schema. Effect's schema of an empty struct says only what it is not, which no provider takes. */
const inputSchema = (input: Schema.Top): ToolLlmView["input_schema"] => {
  const { definitions, schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(input, { onExcessProperty: "error" })
  )
  if (Object.hasOwn(schema, "not")) return NO_INPUT
  return Object.keys(definitions).length === 0 ? schema : { ...schema, definitions }
}

/** The model's view of a built-in tool. */
export const llmView = (name: string, description: string, input: Schema.Top): ToolLlmView => ({
  name: ToolName.make(name),
  description,
  input_schema: inputSchema(input)
})
