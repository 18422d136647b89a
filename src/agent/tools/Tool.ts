/** What a tool is to the arbiter: the model's view, the locks it needs, its effect class, and how it runs. */
import type { Effect, Schema } from "effect"
import type { CallId, LaneId } from "#schema/Ids.ts"
import type { LockRequest, ToolEffect, ToolLlmView } from "#schema/Tool.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"

/** A tool whose whole effect is a commit: it starts, instructs or cancels a job, or moves a skill, and runs nothing. */
export interface ControlTool {
  readonly llm: ToolLlmView
  readonly lanes: "both" | "edge"
  /** Its effect and its result are one batch, which replication never splits (docs/protocol.md, Batches). */
  command(input: unknown, call_id: CallId, lane: LaneId): Effect.Effect<Command, InvalidInput>
}

export type AnyTool = Tool | ControlTool

export const isControl = (tool: AnyTool): tool is ControlTool => "command" in tool

/** A file version as a lane saw it; the base of lost-update protection (E10). */
export interface FileVersion {
  readonly path: string
  readonly sha256: string
}

/** What a run may know of its caller. Everything else it needs, a tool takes when it is made. */
export interface ToolContext {
  readonly lane: LaneId
  readonly call_id: CallId
  /** The newest version of a file that the lane has read or written, or `undefined` when it has seen none. */
  seen(path: string): string | undefined
  /**
   * Whether the call may reach the network: the lane has read nothing from outside, a person has approved the call, or nobody wants to be
   * asked (`confirm_external` is `never`).
   */
  readonly network: boolean
}

/**
 * A finished run. `error` and `timeout` are outcomes that the model is told of, not failures of Choir; `unknown_after_crash` is what
 * choird says of a run that its own death cut off.
 */
export interface ToolOutcome {
  readonly status: "success" | "error" | "timeout" | "unknown_after_crash"
  /** One line for people. */
  readonly summary: string
  /** JSON for the model. */
  readonly output?: Schema.Json
  /** SHA-256 of the file that holds all of an output that is cut here, in hex (R48). */
  readonly artifact_ref?: string
  readonly untrusted?: boolean
  readonly reads?: ReadonlyArray<FileVersion>
  readonly writes?: ReadonlyArray<{ readonly path: string; readonly before?: string; readonly after: string }>
}

/** A call whose input was decoded: what it locks and how it runs. */
export interface PreparedCall {
  readonly locks: ReadonlyArray<LockRequest>
  readonly timeout_ms: number
  /** Where the effect of this call is not the tool's own. */
  readonly effect?: ToolEffect
  /** Interruptible; an interrupt leaves no process and no half-written file behind. */
  run(context: ToolContext): Effect.Effect<ToolOutcome>
}

export interface Tool {
  readonly llm: ToolLlmView
  readonly effect: ToolEffect
  /** Lanes that may call it at all; `choir.core.report` is only a core's. */
  readonly lanes: "both" | "edge" | "core"
  /** Whether edge may call it while core jobs run. */
  readonly readOnly: boolean
  /** Whether models see only the status and the summary of its results (`prompt_mask`). */
  readonly masked?: boolean
  /** Strict on types, lenient on unknown keys; fails with a sentence for the model. */
  prepare(input: unknown): Effect.Effect<PreparedCall, InvalidInput>
}

/** A tool input that does not fit; `problem` is written for the model. */
export interface InvalidInput {
  readonly _tag: "InvalidInput"
  readonly problem: string
}
