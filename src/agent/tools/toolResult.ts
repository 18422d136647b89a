/** What a call comes to, as its event says it. */
import type { PayloadOf } from "#schema/Event.ts"
import { inlineResult } from "#src/agent/model/prompt/inlineResult.ts"
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"
import type { ToolOutcome } from "./Tool.ts"

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
