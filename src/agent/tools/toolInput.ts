/** What the tools of this folder share: the decoding of an input, and refusals in words. */
import { Effect, Result, Schema } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import { fileKey } from "#src/shared/image/lockKey.ts"
import type { InvalidInput, ToolOutcome } from "./Tool.ts"

export const invalidInput = (problem: string): InvalidInput => ({ _tag: "InvalidInput", problem })

/** Strict on types; unknown keys are dropped (docs/tools.md, Built-in tools). Every problem is reported at once. */
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
