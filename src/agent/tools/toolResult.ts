/** What a call comes to, as its event says it. */
import type { PayloadOf } from "#schema/Event.ts"
import { inlineResult } from "#src/agent/model/prompt/inlineResult.ts"
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"
import type { InvalidInput, ToolOutcome } from "./Tool.ts"
import { Effect, Result, Schema } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import { fileKey } from "#src/shared/image/lockKey.ts"

/** What the tools of this folder share: the decoding of an input, and refusals in words. */
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

export type ToolResult = Omit<PayloadOf<"ToolResultCommitted">, "call_id">

export const rejected = (summary: string, more: Partial<ToolResult> = {}): ToolResult => ({
  status: "rejected",
  summary,
  duration_ms: 0,
  ...more
})

/** Of a run between two times. `dirty` says that it read what a job was writing (D26). */
export const resultOf = (
  { output, ...outcome }: ToolOutcome,
  started_ms: number,
  now_ms: number,
  dirty: boolean
): ToolResult => ({
  ...outcome,
  ...(output === undefined ? {} : { output: inlineResult(output) }),
  duration_ms: Math.max(0, now_ms - started_ms),
  ...(dirty ? { dirty: true } : {})
})

/** A tool finds what others wrote down: no result tells a secret that the agent holds, whoever let it out (R32). */
export const withoutSecrets = (
  { output, summary, ...outcome }: ToolOutcome,
  { scrub, scrubJson }: Pick<SecretStore["Service"], "scrub" | "scrubJson">
): ToolOutcome => ({
  ...outcome,
  summary: scrub(summary),
  ...(output === undefined ? {} : { output: scrubJson(output) })
})
