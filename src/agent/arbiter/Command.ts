/** Commands of lanes, tools and signals to the arbiter, and what a decision on them may know. */
import { Result, type Schema } from "effect"
import type { ConfirmReason } from "#schema/Approval.ts"
import type { Capability } from "#schema/Capability.ts"
import type { CoreJobStart, JobTree } from "#schema/Core.ts"
import type {
  ChoirEvent,
  CoreOutcome,
  EventDraft,
  MemoryDelta,
  ModelOutput,
  PayloadOf,
  ToolResultCommitted
} from "#schema/Event.ts"
import type { ApprovalId, GrantId, CallId, InboxId, JobName, LaneId, SignalId } from "#schema/Ids.ts"
import type { SentFile } from "#schema/SentFile.ts"
import type { SkillName } from "#schema/Skill.ts"
import type { SignalOf, TurnName, UserMessage } from "#schema/Signal.ts"
import type { LockRequest, ToolEffect, ToolName } from "#schema/Tool.ts"
import type { Standing } from "#src/agent/settings/AgentSettings.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"
import type { ProfileBook } from "#src/agent/image/ProfileRegistry.ts"

/** A tool that a job may be given. */
export interface JobTool {
  readonly name: ToolName
  readonly effect: ToolEffect
}

export type Output = Omit<typeof ModelOutput.Type, "call_id" | "tool_calls"> & {
  readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly input: PayloadOf<"ToolCallRequested">["input"] }>
}
type ResultPayload = Omit<typeof ToolResultCommitted.Type, "call_id">

/** Files of a call for the user, in their order, with the caption of the first. */
export interface Outbound {
  readonly files: ReadonlyArray<SentFile>
  readonly caption?: string
}

export type Command =
  | { readonly type: "UserMessage"; readonly message: UserMessage }
  /** A message that no event can hold: its sender learns why it was not read. */
  | { readonly type: "RefuseMessage"; readonly message: UserMessage; readonly reason: string }
  /** A message waits behind others; its sender learns its place, once. */
  | { readonly type: "Queued"; readonly inbox_id: InboxId; readonly position: number }
  | { readonly type: "Output"; readonly lane: LaneId; readonly output: Output }
  /** A known tool with a valid input asks for its turn. */
  | {
      readonly type: "Request"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly tool: string
      readonly input: PayloadOf<"ToolCallRequested">["input"]
      readonly effect: ToolEffect
      readonly locks: ReadonlyArray<LockRequest>
      readonly allowed_tools: ReadonlyArray<string> | undefined
      /** The folder outside of which the lane changes nothing: the worktree of its job. */
      readonly within?: string | undefined
      /** Why a person has to see it, whatever the lane has read. */
      readonly confirm?: ConfirmReason | undefined
      /** Everything that the tool can do. */
      readonly capabilities: ReadonlyArray<Capability>
      /** It changes only what the agent itself remembers. */
      readonly keepsOwn?: boolean | undefined
      /** Whether edge may make this call while jobs run although it has an effect. */
      readonly beside_jobs?: boolean
    }
  /** The locks are there. */
  | {
      readonly type: "Grant"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly locks: ReadonlyArray<LockRequest>
      readonly dirty: boolean
      readonly beside_jobs?: boolean
      /** The approval of a call that needs one. */
      readonly approval_id?: ApprovalId | undefined
      readonly grant_id?: GrantId | undefined
      /** The only paths of the workspace that the call may change; absent where it may change any. */
      readonly writes?: ReadonlyArray<string> | undefined
      /** Its result will say what it changed. */
      readonly compares?: boolean
    }
  | {
      readonly type: "Result"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly result: ResultPayload
      /** It was interrupted after it began, so that it may have done its work and nobody knows. */
      readonly in_doubt?: boolean
      /** The files that it leaves for the user. */
      readonly sends?: Outbound
      readonly files?: TouchedFiles
    }
  | {
      readonly type: "Spawn"
      readonly call_id: CallId
      /** The tools that jobs have, of which a profile allows some. */
      readonly tools: ReadonlyArray<JobTool>
      readonly start: Omit<CoreJobStart, "job_id">
      readonly model: string
    }
  /** Starts a job again that a model's error ended, with the instruction of how to continue. */
  | {
      readonly type: "ResumeCore"
      readonly call_id: CallId
      readonly job_name: JobName
      readonly instruction: string
      readonly model: string
    }
  | {
      readonly type: "StartSkill"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly skill: string
      readonly input?: PayloadOf<"ToolCallRequested">["input"]
    }
  | {
      readonly type: "MoveSkill"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly on: string
      readonly output?: PayloadOf<"ToolCallRequested">["input"]
      /** New values of STATE fields. */
      readonly writes?: NonNullable<PayloadOf<"SkillTransitionCommitted">["writes"]>
      readonly confidence?: number
      /** The parts of the result that a judge is to look at. */
      readonly judge_blocks?: ReadonlyArray<{ readonly id: string; readonly text: string }>
    }
  /** Ends a skill, or sends it on, once its rules were broken too often or its steps are used up. */
  | { readonly type: "FailSkill"; readonly lane: LaneId }
  | { readonly type: "InjectCore"; readonly call_id: CallId; readonly job_name: JobName; readonly content: string }
  | { readonly type: "CancelCore"; readonly call_id: CallId; readonly job_name: JobName; readonly reason: string }
  /** The user's, the operator's or choird's own signals, which act without a tool call. */
  | {
      readonly type: "SignalInject"
      readonly signal_id: string
      readonly source: "user" | "control_plane"
      readonly content: string
      /** The job that it answers; edge without. */
      readonly job_name?: JobName | undefined
      /** Why no lane is shown it. */
      readonly refused?: string
    }
  /** Starts a job that runs a skill, by the trigger that is due or by a person's order. */
  | {
      readonly type: "SignalSkill"
      readonly signal_id: SignalId
      readonly job_name: JobName
      readonly skill: SkillName
      readonly input?: Schema.Json | undefined
      readonly trigger?: string | undefined
      readonly model: string
    }
  | { readonly type: "SignalCancel"; readonly signal_id: string; readonly job_name: JobName }
  /** Ends a turn of edge; `report` is what its report would have said, in the runtime's words. */
  | {
      readonly type: "StopTurn"
      readonly signal_id: string
      readonly turn: TurnName
      readonly report?: string | undefined
    }
  /**
   * The oldest of a lane's window, up to a revision, gives way to the summary that the deltas make. Without deltas nothing was to
   * be done, and only the order to compact is answered.
   */
  | {
      readonly type: "Compact"
      readonly lane: LaneId
      readonly deltas: ReadonlyArray<MemoryDelta>
      readonly boundary_rev: number
      /** The newest messages of people that the summary keeps as they were written. */
      readonly words?: ReadonlyArray<string>
      /** The deltas are of trusted text alone, and this quotes what else left. */
      readonly split?: { readonly rest?: string }
      /** The lane waits for it, so that no call is under way whose prompt shows what leaves. */
      readonly is_awaited?: boolean
      readonly signal_id?: string
    }
  | {
      readonly type: "StopCore"
      readonly job_name: JobName
      readonly outcome: CoreOutcome
      readonly summary: string
      readonly result?: PayloadOf<"CoreStopped">["result"]
      readonly resumable?: PayloadOf<"CoreStopped">["resumable"]
      readonly tree?: JobTree | undefined
    }
  /** Answers the open turn, or reports on the oldest stopped job. */
  | {
      readonly type: "Answer"
      readonly text: string
      readonly failed?: "again" | "final"
      /** Its sound. */
      readonly voice?: { readonly files: ReadonlyArray<SentFile>; readonly cost_usd?: number } | undefined
    }
  | { readonly type: "Notice"; readonly lane: LaneId; readonly text: string }
  /** choird has written long-term memory for a call. */
  | {
      readonly type: "MemoryWrite"
      readonly lane: LaneId
      readonly call_id: CallId
      readonly action: "insert" | "update" | "delete"
      readonly document_id: string
      readonly key?: string
    }
  /** Tells the user what a job that runs is at. */
  | { readonly type: "TellJob"; readonly job_name: JobName; readonly job_id: CallId }
  /** The session continues one that reached a limit: edge knows its summary from the beginning. */
  | ({ readonly type: "Continue" } & Omit<SignalOf<"Continue">, "type">)
  /** A person takes the text from outside in edge's window for trusted. */
  | ({ readonly type: "Trust" } & Omit<SignalOf<"Trust">, "type">)
  /** No new conversation begins, since jobs run that nobody said should end. */
  | { readonly type: "NewSession"; readonly signal_id: string }
  /** Ends the session at one of its limits, or by the order of a person, for a new one. */
  | {
      readonly type: "End"
      readonly by: "budget" | "user"
      readonly reason: string
      /** The order that it answers. */
      readonly signal_id?: string | undefined
    }

/** The files of the workspace that a run had to do with, by which labels follow their text. */
export interface TouchedFiles {
  /** The paths whose text or names its result tells; absent where it may tell any. */
  readonly shows?: ReadonlyArray<string>
  /** The paths that it made or changed; absent where it may be any that its call may write. */
  readonly changed?: ReadonlyArray<string>
  /** The file in which its result is kept whole. */
  readonly kept?: string
}

/** The event of a revision, or `undefined` when it left this process (D9). */
export type Find = (rev: number) => ChoirEvent | undefined

/** The facts that a decision may use besides the state. */
export interface Situation extends Standing {
  readonly skills: SkillBook
  readonly profiles: ProfileBook
  /** Looks up an event that is in memory. */
  readonly find: Find
}

/**
 * `reason` is a sentence for the model or the log; `exhausted` names the session's limit that is reached; `allowed` is what the lane's
 * skill lets it do instead, `denied` what its skill may not. `ends_job` is a limit of the job's, which is over with it; what `awaits_jobs` is
 * possible once none runs, and what `awaits_verdict` once a judge has looked at the result.
 */
export interface Rejected {
  readonly reason: string
  readonly exhausted?: string
  readonly ends_job?: boolean
  readonly awaits_jobs?: boolean
  readonly awaits_verdict?: boolean
  readonly denied?: NonNullable<PayloadOf<"ToolResultCommitted">["denied"]>
  readonly allowed?: NonNullable<PayloadOf<"ToolResultCommitted">["allowed"]>
}
export type Decision = Result.Result<ReadonlyArray<EventDraft>, Rejected>

export const accept = (...events: ReadonlyArray<EventDraft>): Decision => Result.succeed(events)
export const reject = (reason: string, exhausted?: string): Decision =>
  Result.fail(exhausted === undefined ? { reason } : { reason, exhausted })
/** A refusal for breaking the rules of a lane's skill. */
export const refuse = (reason: string, allowed: NonNullable<Rejected["allowed"]>): Decision =>
  Result.fail({ reason, allowed })

/** The two events around the effect of a control call: its commit and its result (docs/protocol.md, Batches). */
export const controlBatch = (
  lane: LaneId,
  call_id: CallId,
  summary: string,
  output: PayloadOf<"ToolResultCommitted">["output"]
) =>
  [
    { event_type: "ToolCallCommitted", lane, payload: { call_id, locks: [] } },
    {
      event_type: "ToolResultCommitted",
      lane,
      payload: { call_id, status: "success", summary, duration_ms: 0, ...(output === undefined ? {} : { output }) }
    }
  ] as const satisfies ReadonlyArray<EventDraft>
