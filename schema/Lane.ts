/** The states of the two kinds of lanes and their legal transitions, as data (docs/protocol.md, Lanes). */
import { Schema } from "effect"

export const EdgeState = Schema.Literals([
  "EDGE_IDLE",
  "EDGE_CONTEXT_READY",
  "EDGE_REASONING",
  "EDGE_WAITING_TOOL",
  "EDGE_FINALIZING",
  "EDGE_TERMINATED"
])
export type EdgeState = typeof EdgeState.Type

export const CoreState = Schema.Literals([
  "CORE_CREATED",
  "CORE_INITIALIZING",
  "CORE_REASONING",
  "CORE_WAITING_TOOL",
  "CORE_COMPLETED",
  "CORE_TERMINATED"
])
export type CoreState = typeof CoreState.Type

export type LaneState = EdgeState | CoreState

/** A transition of a lane, named after the event that reports it and, where one event can mean several things, its case. */
export type LaneMove =
  | "UserMsg"
  | "ModelOutput.tool_calls"
  | "ModelOutput.text"
  | "ModelOutput.error"
  | "ToolResultCommitted.last"
  | "AgentMessage.answer"
  | "InjectedInstruction"
  | "CoreStarted"
  | "CoreStopped.completed"
  | "CoreStopped.other"
  | "Cancelled"
  | "Cancelled.turn"

type Table<S extends string> = Readonly<Record<S, Readonly<Partial<Record<LaneMove, ReadonlyArray<S>>>>>>

/**
 * The path each move takes through edge's states; what is not listed is illegal. A model output of the purpose `turn` or
 * `report` first enters REASONING; an answer by the runtime itself passes through FINALIZING as well. A report turn starts
 * from IDLE, since no event but its own model output marks it. FINALIZING leads back where the words were missing or cut off.
 * A turn is stopped once its calls are closed and before its answer is ready, which in FINALIZING is so
 * while such words are asked for again; the runtime's own answer follows at once.
 */
export const EDGE_TRANSITIONS: Table<EdgeState> = {
  EDGE_IDLE: {
    UserMsg: ["EDGE_CONTEXT_READY"],
    "ModelOutput.tool_calls": ["EDGE_CONTEXT_READY", "EDGE_REASONING", "EDGE_WAITING_TOOL"],
    "ModelOutput.text": ["EDGE_CONTEXT_READY", "EDGE_REASONING", "EDGE_FINALIZING"],
    "ModelOutput.error": ["EDGE_CONTEXT_READY", "EDGE_REASONING", "EDGE_FINALIZING"],
    "AgentMessage.answer": ["EDGE_CONTEXT_READY", "EDGE_FINALIZING", "EDGE_IDLE"],
    InjectedInstruction: [],
    Cancelled: ["EDGE_TERMINATED"],
    "Cancelled.turn": ["EDGE_CONTEXT_READY", "EDGE_FINALIZING"]
  },
  EDGE_CONTEXT_READY: {
    "ModelOutput.tool_calls": ["EDGE_REASONING", "EDGE_WAITING_TOOL"],
    "ModelOutput.text": ["EDGE_REASONING", "EDGE_FINALIZING"],
    "ModelOutput.error": ["EDGE_REASONING", "EDGE_FINALIZING"],
    "AgentMessage.answer": ["EDGE_FINALIZING", "EDGE_IDLE"],
    InjectedInstruction: [],
    Cancelled: ["EDGE_TERMINATED"],
    "Cancelled.turn": ["EDGE_FINALIZING"]
  },
  EDGE_REASONING: {
    "ModelOutput.tool_calls": ["EDGE_WAITING_TOOL"],
    "ModelOutput.text": ["EDGE_FINALIZING"],
    "ModelOutput.error": ["EDGE_FINALIZING"],
    "AgentMessage.answer": ["EDGE_FINALIZING", "EDGE_IDLE"],
    InjectedInstruction: [],
    Cancelled: ["EDGE_TERMINATED"],
    "Cancelled.turn": ["EDGE_FINALIZING"]
  },
  EDGE_WAITING_TOOL: {
    "ToolResultCommitted.last": ["EDGE_REASONING"],
    InjectedInstruction: [],
    Cancelled: ["EDGE_TERMINATED"]
  },
  EDGE_FINALIZING: {
    "ModelOutput.tool_calls": ["EDGE_REASONING", "EDGE_WAITING_TOOL"],
    "ModelOutput.text": ["EDGE_REASONING", "EDGE_FINALIZING"],
    "ModelOutput.error": ["EDGE_REASONING", "EDGE_FINALIZING"],
    "AgentMessage.answer": ["EDGE_IDLE"],
    InjectedInstruction: [],
    Cancelled: ["EDGE_TERMINATED"],
    "Cancelled.turn": []
  },
  EDGE_TERMINATED: {
    "ToolResultCommitted.last": [],
    "AgentMessage.answer": []
  }
}

/** The same for a core job. Cancelled only marks it; CoreStopped is what ends it, whatever it waited for. */
export const CORE_TRANSITIONS: Table<CoreState> = {
  CORE_CREATED: { CoreStarted: ["CORE_INITIALIZING"] },
  CORE_INITIALIZING: {
    "ModelOutput.tool_calls": ["CORE_REASONING", "CORE_WAITING_TOOL"],
    "ModelOutput.text": ["CORE_REASONING"],
    "ModelOutput.error": ["CORE_REASONING"],
    InjectedInstruction: [],
    Cancelled: [],
    "CoreStopped.other": ["CORE_TERMINATED"]
  },
  CORE_REASONING: {
    "ModelOutput.tool_calls": ["CORE_WAITING_TOOL"],
    "ModelOutput.text": ["CORE_REASONING"],
    "ModelOutput.error": ["CORE_REASONING"],
    InjectedInstruction: ["CORE_REASONING"],
    Cancelled: [],
    "CoreStopped.completed": ["CORE_COMPLETED"],
    "CoreStopped.other": ["CORE_TERMINATED"]
  },
  CORE_WAITING_TOOL: {
    "ToolResultCommitted.last": ["CORE_REASONING"],
    InjectedInstruction: [],
    Cancelled: [],
    "CoreStopped.other": ["CORE_TERMINATED"]
  },
  CORE_COMPLETED: {},
  CORE_TERMINATED: {}
}
