/** What a session is at a revision: the result of the fold. It names revisions, not payloads (wire.md, Snapshots). */
import type { HashMap } from "effect"
import type { CoreBudgets } from "#schema/Core.ts"
import type { CallId, InboxId, JobName, LaneId, ResourceName } from "#schema/Ids.ts"
import type { CoreState, EdgeState } from "#schema/Lane.ts"
import type { ToolEffect } from "#schema/Tool.ts"

/** Tokens, money and calls that a session has used up; shared by edge and all cores (D28). */
export interface Spent {
  readonly tokens: number
  readonly cost_usd: number
  readonly tool_calls: number
}

/** A tool call of a lane's newest model output that has no result yet. */
export interface OpenCall {
  readonly call_id: CallId
  /** As the model named it. */
  readonly name: string
  /** Equal for equal names and inputs. */
  readonly digest: string
  readonly stage: "proposed" | "requested" | "committed"
  readonly effect: ToolEffect | undefined
  /** The revision of the ModelOutput that proposed it. */
  readonly output_rev: number
  /** The revision of its newest ToolCallCommitted; 0 before. */
  readonly committed_rev: number
}

/** The last call of a lane and how often running it gave the same result (E11). */
export interface Repetition {
  readonly call: string
  readonly result: string
  readonly times: number
}

/** What both kinds of lanes have. */
export interface LaneMemory {
  /** The calls that the newest model output proposed and that are open, in its order. */
  readonly calls: ReadonlyArray<OpenCall>
  /** Model calls so far: of this turn for edge, of the whole job for a core. */
  readonly step: number
  /** The revisions of the lane's window, oldest first, at most WINDOW_REVS_MAX. */
  readonly window: ReadonlyArray<number>
  /** The newest version of each file that the lane has read or written (E10). */
  readonly seen: HashMap.HashMap<string, string>
  readonly tainted: boolean
  readonly repetition: Repetition
}

/** Why edge is at work. */
export type Turn =
  | { readonly kind: "turn"; readonly inbox_id: InboxId; readonly dm: ResourceName; readonly rev: number }
  | { readonly kind: "report"; readonly report: PendingReport; readonly rev: number }

export interface EdgeLane extends LaneMemory {
  readonly state: EdgeState
  readonly turn: Turn | undefined
  /** The newest turn or report ModelOutput of the open turn; 0 when there is none yet. */
  readonly output_rev: number
}

export interface CoreLane extends LaneMemory {
  readonly state: CoreState
  readonly job_id: CallId
  readonly job_name: JobName
  readonly lane: LaneId
  readonly started_rev: number
  readonly started_at: string
  readonly model: string
  readonly budgets: CoreBudgets
  readonly tool_calls: number
  readonly injections: number
  /** The newest ModelOutput of the job; 0 when there is none yet. */
  readonly output_rev: number
  readonly spent: { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number }
  readonly cancelled: string | undefined
  /** The message of the turn that spawned it; its report answers that one. */
  readonly inbox_id: InboxId | undefined
}

/** A stopped job whose outcome edge still has to tell the user (spec 7.1). */
export interface PendingReport {
  readonly job_id: CallId
  readonly job_name: JobName
  readonly stopped_rev: number
  readonly inbox_id: InboxId | undefined
}

export interface SessionState {
  readonly rev: number
  readonly edge: EdgeLane
  /** Running jobs by name. A job leaves when it stops. */
  readonly cores: ReadonlyMap<JobName, CoreLane>
  readonly spent: Spent
  /** The message last committed; later ones have greater ids. */
  readonly last_inbox_id: bigint
  /** Signals that ended in an event, the newest SIGNALS_REMEMBERED_MAX. */
  readonly signals: ReadonlyArray<string>
  readonly reports: ReadonlyArray<PendingReport>
  /** Why the session ended for good, once a limit of it was reached or it was stopped. */
  readonly ended: string | undefined
}
