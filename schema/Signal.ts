/** The signals that choird pushes to an agent. Rows of the `signals` table end in an event; the other two are computed at connect. */
import { Schema } from "effect"
import { Resolution } from "./Approval.ts"
import { SkillName } from "./Skill.ts"
import { Attachment } from "./Event.ts"
import { ApprovalId, InboxId, JobName, LaneId, ResourceName, Rev, SessionId, SignalId } from "./Ids.ts"
import { Sources } from "./Source.ts"
import { Summary } from "./Summary.ts"

const kind = <const T extends string, F extends Schema.Struct.Fields>(type: T, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

/** A message for edge, acknowledged by the UserMsg that carries its inbox_id. */
export const UserMessage = kind("UserMessage", {
  inbox_id: InboxId,
  dm: ResourceName,
  text: Schema.String,
  attachments: Schema.Array(Attachment),
  created_at: Schema.String,
  /** Somebody else wrote it; the person only handed it on. */
  forwarded: Schema.optionalKey(Schema.Boolean),
  /** The person wants to hear the answer. */
  speak: Schema.optionalKey(Schema.Boolean),
  /** The agent adds it from its configuration. */
  writer: Schema.optionalKey(ResourceName),
  /** The session before reached a limit before its answer. */
  carried: Schema.optionalKey(Schema.Boolean)
})
export type UserMessage = typeof UserMessage.Type

/**
 * The name of a turn that holds before and after choird knows of it: the message that it answers, or the revision of what a report tells
 * of, which is the end or the question of a job.
 */
export const TurnName = Schema.Union([Schema.Struct({ inbox_id: InboxId }), Schema.Struct({ report_rev: Rev })])
export type TurnName = typeof TurnName.Type

/** The pushed signals as one union, discriminated by `type`. */
export const Signal = Schema.Union([
  UserMessage,
  /** For edge, or with `job_name` the person's answer to that job's question. */
  kind("Inject", { signal_id: SignalId, content: Schema.String, job_name: Schema.optionalKey(JobName) }),
  /** Starts a job that runs a skill from its first step to its end, by a person's order or by the skill's trigger. */
  kind("StartSkill", {
    signal_id: SignalId,
    job_name: JobName,
    skill: SkillName,
    input: Schema.optionalKey(Schema.Json),
    /** The trigger, such as `schedule: daily at 07:30`; absent where a person ordered it. */
    trigger: Schema.optionalKey(Schema.String)
  }),
  kind("CancelCore", { signal_id: SignalId, job_name: JobName }),
  /** Ends one turn and no other, so that an order that arrives late does not end the next one. */
  kind("StopTurn", { signal_id: SignalId, turn: TurnName }),
  kind("Compact", { signal_id: SignalId, lane: Schema.optionalKey(LaneId) }),
  /** A person takes the text from outside in edge's window for trusted, as it was shown: up to the newest event that brought some. */
  kind("Trust", { signal_id: SignalId, rev: Rev }),
  /** The summary of the session before, which reached a limit; it comes before every message. */
  kind("Continue", {
    signal_id: SignalId,
    session_id: SessionId,
    summary: Summary,
    /** Where text came from that its edge had read. */
    sources: Schema.optionalKey(Sources)
  }),
  /** Ends the session for a new one once the open turn has its answer. Jobs are ended only if the person said so. */
  kind("NewSession", { signal_id: SignalId, end_jobs: Schema.optionalKey(Schema.Boolean) }),
  /** With a `note` it is about a proposal: those words of choird's own are what its event holds. */
  kind("ApprovalResolved", {
    approval_id: ApprovalId,
    status: Resolution,
    signal_id: Schema.optionalKey(SignalId),
    note: Schema.optionalKey(Schema.String)
  }),
  kind("ConfigChanged", { config_version: Schema.Natural }),
  /** Asks for the newest prompt of a lane, which REPORT_STATUS answers under this id. */
  kind("DescribeContext", { request_id: Schema.String, lane: LaneId }),
  kind("Stop", { deadline_ms: Schema.Natural })
])
export type Signal = typeof Signal.Type
export type SignalOf<T extends Signal["type"]> = Extract<Signal, { readonly type: T }>
