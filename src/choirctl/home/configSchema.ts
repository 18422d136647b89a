/** The JSON Schema of config.json, for editors and for `choirctl config schema`. */
import { JsonSchema, Schema } from "effect"
import { Config } from "#schema/Config.ts"

const { definitions, schema } = JsonSchema.toDocumentDraft07(
  Schema.toJsonSchemaDocument(Config, { onExcessProperty: "error" })
)

export const configSchema: Readonly<Record<string, unknown>> = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "config.json of Choir",
  ...schema,
  ...(Object.keys(definitions).length === 0 ? {} : { definitions })
}
