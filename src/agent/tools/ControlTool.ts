/** A tool whose whole effect is a commit: it starts, instructs or cancels a job, or moves a skill, and runs nothing. */
import type { Effect } from "effect"
import type { CallId, LaneId } from "#schema/Ids.ts"
import type { ToolLlmView } from "#schema/Tool.ts"
import type { Proposal } from "#src/agent/arbiter/Proposal.ts"
import type { InvalidInput, Tool } from "./Tool.ts"

export interface ControlTool {
  readonly llm: ToolLlmView
  readonly lanes: "both" | "edge"
  /** Its effect and its result are one batch, which replication never splits (docs/protocol.md, Batches). */
  propose(input: unknown, call_id: CallId, lane: LaneId): Effect.Effect<Proposal, InvalidInput>
}

export type AnyTool = Tool | ControlTool

export const isControl = (tool: AnyTool): tool is ControlTool => "propose" in tool
