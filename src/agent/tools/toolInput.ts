/** What the tools of this folder share: the model's view of an input, its decoding, and refusals in words. */
import { Effect, JsonSchema, Result, Schema } from "effect"
import { LockRequest, type ToolLlmView, ToolName } from "#schema/Tool.ts"
import { fileKey } from "#src/shared/image/lockKey.ts"
import type { InvalidInput, ToolOutcome } from "./Tool.ts"

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

export const invalidInput = (problem: string): InvalidInput => ({ _tag: "InvalidInput", problem })

/** Strict on types; unknown keys are dropped (wire.md, Lanes and models). Every problem is told at once. */
export const decodeInput = <S extends Schema.Decoder<unknown>>(
  schema: S
): ((input: unknown) => Effect.Effect<S["Type"], InvalidInput>) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all" })
  return (input) => Effect.mapError(decode(input), (error) => invalidInput(error.message))
}

/** The lock on a path that a model named, or why it names none. */
export const lockOn = (path: string, mode: LockRequest["mode"]): Effect.Effect<LockRequest, InvalidInput> =>
  Effect.fromResult(
    Result.mapBoth(fileKey(path), {
      onSuccess: (resource) => LockRequest.make({ resource, mode }),
      onFailure: (error) => invalidInput(error.message)
    })
  )

/** An outcome that tells the model what went wrong and what to do. */
export const refusal = (
  error: { readonly message: string },
  output?: Readonly<Record<string, Schema.Json>>
): ToolOutcome => ({
  status: "error",
  summary: error.message,
  output: { error: error.message, ...output }
})
