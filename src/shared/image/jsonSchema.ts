/** Values against JSON Schemas that a repository or a model wrote. */
import { JsonSchema, Result, Schema, SchemaRepresentation } from "effect"
import { problemsOf, problemText } from "#src/shared/config/configProblems.ts"
import { sizeProblem } from "./schemaSize.ts"

type JsonSchemaObject = Readonly<Record<string, Schema.Json>>

/**
 * The decoder of a schema's values, or why there is none: draft 07 when `$schema` says so, otherwise 2020-12. Patterns of a model's own
 * are ignored, since one could take forever on an answer of its own.
 */
export const inputDecoder = (
  schema: JsonSchemaObject,
  patterns: "apply" | "ignore"
): Result.Result<Schema.Codec<unknown>, string> => {
  const large = sizeProblem(schema)
  if (large !== undefined) return Result.fail(large)
  return Result.mapError(
    Result.try(() => {
      const { $schema } = schema
      const isDraft07 = typeof $schema === "string" && $schema.includes("draft-07")
      const document = (isDraft07 ? JsonSchema.fromSchemaDraft07 : JsonSchema.fromSchemaDraft2020_12)(schema)
      return Schema.make<Schema.Codec<unknown>>(SchemaRepresentation.fromJsonSchemaDocument(document, { patterns }).ast)
    }),
    (error) => (error instanceof Error ? error.message : "it is not a JSON Schema")
  )
}

/** Why values cannot be checked against a schema; `undefined` when they can. */
export const schemaProblem = (schema: JsonSchemaObject): string | undefined => {
  const checked = inputDecoder(schema, "ignore")
  return Result.isSuccess(checked) ? undefined : checked.failure
}

/** The misfits of a value, in words for the model; `undefined` when it fits. An invalid schema is a problem, too. */
export const valueProblem = (schema: JsonSchemaObject, value: Schema.Json): string | undefined => {
  const checked = inputDecoder(schema, "ignore")
  if (Result.isFailure(checked)) return "the schema is not a JSON Schema that can be checked"
  const decoded = Schema.decodeResult(checked.success, { errors: "all" })(value)
  return Result.isFailure(decoded) ? problemsOf([decoded.failure.message]).map(problemText).join("; ") : undefined
}
