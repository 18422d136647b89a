/** Whether a job's result fits the JSON Schema that edge asked for (spec 12.7). */
import { JsonSchema, Result, Schema, SchemaRepresentation } from "effect"

/** What does not fit, in words for the model; `undefined` when all does. A schema that is none is told, too. */
export const resultProblem = (
  output_schema: Readonly<Record<string, Schema.Json>>,
  result: Schema.Json
): string | undefined => {
  const schema = Result.try(() => {
    // A pattern of a model's own could take for ever on an answer of its own, so patterns only inform here.
    const document = JsonSchema.fromSchemaDraft2020_12(output_schema)
    return Schema.make<Schema.Codec<unknown>>(
      SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "ignore" }).ast
    )
  })
  if (Result.isFailure(schema)) return "output_schema is no JSON Schema that can be checked"
  const decoded = Schema.decodeResult(schema.success, { errors: "all" })(result)
  return Result.isFailure(decoded) ? decoded.failure.message : undefined
}
