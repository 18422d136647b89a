/** choir.memory.compact: orders the reference summary of the calling lane to be brought up to date. */
import { Effect, Schema } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import type { Tool } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { CONTROL_TIMEOUT_MS } from "./coreReport.ts"

export const memoryCompact = (request: (lane: LaneId) => Effect.Effect<void>): Tool => ({
  llm: llmView(
    "choir.memory.compact",
    "Fold the oldest events of your context into your reference summary. It happens in the background; go on meanwhile.",
    Schema.Struct({})
  ),
  effect: "none",
  lanes: "both",
  readOnly: true,
  prepare: () =>
    Effect.succeed({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: ({ lane }) =>
        Effect.as(request(lane), { status: "success", summary: "the summary is being updated" } as const)
    })
})
