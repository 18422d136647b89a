/**
 * The state of a session at a revision: the result of the fold. It names revisions, not payloads (docs/protocol.md, Snapshots); only the
 * reference summaries, which replace what rolled off, are held themselves.
 */
import type { ConfirmReason } from "#schema/Approval.ts"
import type { CoreBudgets } from "#schema/Core.ts"
import type { MemoryFact } from "#schema/Event.ts"
import type { CallId, InboxId, JobName, LaneId, ResourceName } from "#schema/Ids.ts"
import type { CoreState, EdgeState } from "#schema/Lane.ts"
import type { Source } from "#schema/Source.ts"
import type { FileLabels } from "./fileLabels.ts"
import type { Label, QuotedRest } from "./Label.ts"
import type { ToolEffect } from "#schema/Tool.ts"

/** Reports and questions of jobs that the user has not seen yet. No job starts or asks where there may be no room for its end. */
export const REPORTS_OWED_MAX = 1000

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
  /** Why it may only run once a person has approved it; absent where it may run by itself (D31). */
  readonly confirm?: ConfirmReason
  /** The sources of the lane's text when it asked for a person. */
  readonly sources?: ReadonlyArray<Source>
  /** The revision of the ModelOutput that proposed it. */
  readonly output_rev: number
  /** The revision of its newest ToolCallCommitted; 0 before. */
  readonly committed_rev: number
  /** The report of a `choir.core.report`: the revision of its request, and whether it is a question to the user or holds the job's plan. */
  readonly report: { readonly rev: number; readonly isQuestion: boolean; readonly isPlan?: boolean } | undefined
  /** The revision of the request of a job's account of its work. */
  readonly writeback_rev?: number
  /** It runs a command that commits the workspace to git. */
  readonly commits?: boolean
  /** It works on something below `.choirtmp`, by its locks. */
  readonly staged?: boolean
  /** The only paths of the workspace that it may change; absent where it may change any. */
  readonly writes?: ReadonlyArray<string>
  /** Its result says what it changed. */
  readonly compares?: boolean
}

/** A call of a lane and how often it gave the same result since anything was new (E11). */
export interface Repetition {
  readonly call: string
  readonly result: string
  readonly times: number
}

/** The memory of events that left a lane's window, within the limits of `memory.ts`. */
export interface ReferenceSummary {
  readonly summary: string
  readonly facts: ReadonlyArray<MemoryFact>
  readonly referenced_sessions: ReadonlyArray<string>
  readonly referenced_events: ReadonlyArray<string>
  /** Paths that the lane wrote and did not commit to git, as of the newest compaction. */
  readonly files: ReadonlyArray<string>
  /** The newest messages of people that left the window, as they wrote them, oldest first. */
  readonly words: ReadonlyArray<string>
  /** A quotation of the rest of what left with the newest compaction. Everything above is trusted where the lane's label is not `mixed`. */
  readonly rest?: QuotedRest
}

/** Where a lane is in the skill that it runs. The skill's text is in the image, and no event depends on it. */
export interface ActiveSkill {
  readonly name: string
  readonly state: string
  /** Model calls since it began. */
  readonly step: number
  /** Model outputs in this state that broke its rules, however many of their calls were refused. */
  readonly violations: number
  /** The newest such output; 0 when there is none. */
  readonly violation_rev: number
  /** The events that began it, which holds its input, and that led to the present state. */
  readonly started_rev: number
  readonly entered_rev: number
  /**
   * The fields of its STATE that have a value, and the events that hold the newest value of each. A skill without a contract has a field for
   * each state that was left with a result.
   */
  readonly fields: ReadonlyArray<{ readonly name: string; readonly rev: number }>
  /** Its results that were not taken. */
  readonly attempt: number
  /** The newest verdict on a result of the lane; 0 when there is none. */
  readonly judged_rev: number
}

/** The parts that both kinds of lanes have. */
export interface LaneMemory {
  /** The calls that the newest model output proposed and that are open, in its order. */
  readonly calls: ReadonlyArray<OpenCall>
  /** Model calls so far: of this turn for edge, of the whole job for a core. */
  readonly step: number
  /** The revisions of the lane's window, oldest first, at most WINDOW_REVS_MAX. */
  readonly window: ReadonlyArray<number>
  /** The newest revision that the summary covers; the window begins after it. */
  readonly boundary: number
  readonly summary: ReferenceSummary
  /** The newest versions of files that the lane has read or written, the longest unused first, within SEEN_FILES_MAX and SEEN_PATHS_CHARS_MAX (E10). */
  readonly seen: ReadonlyMap<string, string>
  /** Paths that the lane wrote since its last commit to git, the newest last; at most WRITTEN_FILES_MAX. */
  readonly written: ReadonlyArray<string>
  /** The environment in the lane's system text, as its first call showed it; empty before. */
  readonly environment: string
  readonly tainted: boolean
  /** Where the text came from that taints it, as far as events say; at most SOURCES_MAX. */
  readonly sources: ReadonlyArray<Source>
  /** Since when it is tainted, and what of it is in the window; absent in a lane that is not. */
  readonly label?: Label | undefined
  /** The lane's newest different calls, the newest last; at most REPETITIONS_REMEMBERED_MAX. */
  readonly repetitions: ReadonlyArray<Repetition>
  /** One at a time. */
  readonly skill: ActiveSkill | undefined
}

/** Why edge is at work. */
export type Turn =
  | { readonly kind: "turn"; readonly inbox_id: InboxId; readonly dm: ResourceName; readonly rev: number }
  | { readonly kind: "report"; readonly report: PendingReport; readonly rev: number }

/** A turn whose open calls all wait for a person, set aside for a message that came meanwhile. */
export interface ParkedTurn extends Pick<LaneMemory, "calls" | "step"> {
  readonly turn: Turn
  readonly output_rev: number
}

export interface EdgeLane extends LaneMemory {
  readonly state: EdgeState
  readonly turn: Turn | undefined
  /** It resumes as soon as the open turn has its reply. */
  readonly parked: ParkedTurn | undefined
  /** The newest turn or report ModelOutput of the open turn; 0 when there is none yet. */
  readonly output_rev: number
}

/** A job's newest ModelOutput, as far as the next step depends on it. */
export interface CoreOutput {
  /** 0 when there is none yet. */
  readonly rev: number
  /** It proposes no calls, so that it is the result unless something speaks against it. */
  readonly isFinal: boolean
  /** An instruction came that its prompt did not show, or a skill of the job ended after it. */
  readonly isSuperseded: boolean
  /** The output before was a result too and did not fit, and this one was asked for as its correction. */
  readonly isCorrection: boolean
}

/** A job's work so far, over all its lives; the counts of `jobWork.ts` people read. */
export interface JobWork {
  /** Files that it read; one that it wrote before does not count, and one that it forgot meanwhile counts again. */
  readonly files_read: number
  /** Paths that its tools wrote, the first CHANGED_FILES_MAX. What its commands wrote is not known. */
  readonly changed: ReadonlyArray<string>
  /** Commands that it ran. */
  readonly commands: number
  /** The tool that it called last, by its canonical name; empty before the first. */
  readonly last_tool: string
  /** Spent before it was resumed. */
  readonly earlier: { readonly tokens: number; readonly cost_usd: number; readonly ms: number }
}

/** A moment of a job: an event, and when it was committed. */
export interface Moment {
  readonly rev: number
  readonly at: string
}

export interface CoreLane extends LaneMemory {
  readonly state: CoreState
  readonly job_id: CallId
  readonly job_name: JobName
  readonly lane: LaneId
  readonly started_rev: number
  /** Where the first of its lives began, and with it the part of the log that it may search; no prompt needs that event. */
  readonly began_rev: number
  readonly started_at: string
  readonly model: string
  readonly budgets: CoreBudgets
  readonly tool_calls: number
  readonly injections: number
  /** The newest result or output, which every later prompt shows together with the instructions before it. */
  readonly settled_rev: number
  /** The newest instruction; 0 when there is none. */
  readonly injection_rev: number
  readonly output: CoreOutput
  /** The newest report of the job, which edge is shown while the job runs; 0 when there is none. */
  readonly report_rev: number
  /** The newest report that holds its plan. */
  readonly plan: Moment | undefined
  /** The newest account of its work; 0 when there is none. */
  readonly writeback_rev: number
  /** The newest line on it that the user got while it ran. */
  readonly told: Moment | undefined
  readonly work: JobWork
  /** The question to the user whose answer the job waits for, until an instruction comes. */
  readonly question: { readonly rev: number; readonly asked_at: string } | undefined
  readonly spent: { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number }
  readonly cancelled: string | undefined
  /** The newest end of a skill of the job's; 0 when there is none. */
  readonly skill_end_rev: number
  /** The message of the turn that spawned it; its report answers that one. */
  readonly inbox_id: InboxId | undefined
  /** The skill within whose step it was started; such a job starts none. */
  readonly in_skill: string | undefined
}

/** A job that a model's error ended, as it can be resumed (D49): its wall time is what is left of it, and no call of it is open. */
export interface ResumableJob {
  readonly core: CoreLane
  readonly stopped_rev: number
}

/** A report on a job that edge still owes the user: how it ended, or the question that it asks. */
export interface PendingReport {
  readonly kind: "stopped" | "question"
  readonly job_id: CallId
  readonly job_name: JobName
  /** The CoreStopped, or the ToolCallRequested that holds the question. */
  readonly rev: number
  readonly inbox_id: InboxId | undefined
}

export interface SessionState {
  readonly rev: number
  readonly edge: EdgeLane
  /** Running jobs by name, at most CORE_JOBS_MAX. A job leaves when it stops. */
  readonly cores: ReadonlyMap<JobName, CoreLane>
  /** Jobs that can be resumed, by name, the newest last; kept within the limits of `resumableJobs.ts`. */
  readonly resumable: ReadonlyMap<JobName, ResumableJob>
  readonly spent: Spent
  /** The message last committed; later ones have greater ids. */
  readonly last_inbox_id: bigint
  /** The newest message whose sender got the notice that it waits. */
  readonly queued_inbox_id: bigint
  /** Signals that ended in an event, the newest SIGNALS_REMEMBERED_MAX. */
  readonly signals: ReadonlyArray<string>
  /** At most REPORTS_OWED_MAX. */
  readonly reports: ReadonlyArray<PendingReport>
  /** Steps taken for each message that has something open, and for some that no longer do. */
  readonly message_steps: ReadonlyMap<InboxId, number>
  /** A tainted lane may have written the workspace, so that a lane that reads it is tainted (D31). */
  readonly workspace_tainted: boolean
  /** Where the text came from that those lanes had read. */
  readonly workspace_sources: ReadonlyArray<Source>
  /** People have sent files that are below `.choirtmp`. */
  readonly workspace_received: boolean
  /** Files with text from outside while not all count as such; empty where the workspace is tainted as a whole. */
  readonly workspace_files: FileLabels
  /** The sources of labels that have ended: what is read again of the log may be text from there. */
  readonly past_sources: ReadonlyArray<Source>
  /** Why the session ended for good, once a limit of it was reached or it was stopped. */
  readonly ended: string | undefined
  /** The message that the next session answers, once this one has ended at a limit before its answer. */
  readonly carried?: InboxId
}
