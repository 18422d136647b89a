/** What choird pushes to an agent. Rows of the `signals` table end in an event; the other two are computed at connect. */
import { Schema } from "effect"
import { Resolution } from "./Approval.ts"
import { Attachment } from "./Event.ts"
import { ApprovalId, InboxId, JobName, LaneId, ResourceName, SignalId } from "./Ids.ts"

const kind = <const T extends string, F extends Schema.Struct.Fields>(type: T, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

/** A message for edge, acknowledged by the UserMsg that carries its inbox_id. */
export const UserMessage = kind("UserMessage", {
  inbox_id: InboxId,
  dm: ResourceName,
  text: Schema.String,
  attachments: Schema.Array(Attachment),
  created_at: Schema.String
})
export type UserMessage = typeof UserMessage.Type

/** The pushed signals as one union, discriminated by `type`. */
export const Signal = Schema.Union([
  UserMessage,
  kind("Inject", { signal_id: SignalId, content: Schema.String }),
  kind("CancelCore", { signal_id: SignalId, job_name: JobName }),
  kind("Compact", { signal_id: SignalId, lane: Schema.optionalKey(LaneId) }),
  /** With a `note` it is about a proposal: those words of choird's own are what its event holds. */
  kind("ApprovalResolved", {
    approval_id: ApprovalId,
    status: Resolution,
    signal_id: Schema.optionalKey(SignalId),
    note: Schema.optionalKey(Schema.String)
  }),
  kind("ConfigChanged", { config_version: Schema.Natural }),
  kind("Stop", { deadline_ms: Schema.Natural })
])
export type Signal = typeof Signal.Type
export type SignalOf<T extends Signal["type"]> = Extract<Signal, { readonly type: T }>
