/** A question for a person to decide, and the status of the decision (D16). */
import { Schema } from "effect"
import { ApprovalId, GrantId, LaneId } from "./Ids.ts"
import { Sources } from "./Source.ts"
import { ToolName } from "./Tool.ts"

/** `pending` until somebody decides or nobody does in time; what was approved is executed at most once (R52). */
export const ApprovalStatus = Schema.Literals([
  "pending",
  "approved",
  "rejected",
  "expired",
  "executing",
  "done",
  "failed"
])
export type ApprovalStatus = typeof ApprovalStatus.Type

/** How a decision ends; there is one, and it never changes. */
export const Resolution = Schema.Literals(["approved", "rejected", "expired"])
export type Resolution = typeof Resolution.Type

/**
 * Why a call needs a person: its lane's window holds untrusted text, or each such call needs one (D31), or it writes to somebody new. An
 * agent of an earlier Choir does not know the last one.
 */
export const ConfirmReason = Schema.Literals(["tainted", "always", "new_recipients"])
export type ConfirmReason = typeof ConfirmReason.Type

/** Files that one call hands out. */
const ATTACHED_FILES_MAX = 16
const ATTACHED_PATH_CHARS_MAX = 4096

/** A file that a call would hand out or run, as it was when a person was asked. */
export const AttachedFile = Schema.Struct({
  path: Schema.String.check(Schema.isMaxLength(ATTACHED_PATH_CHARS_MAX)),
  bytes: Schema.Natural,
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))
})
export type AttachedFile = typeof AttachedFile.Type

/** The payload of a `confirm_tool`: the call as it stands in the log. */
export const ConfirmTool = Schema.Struct({
  tool: ToolName,
  input: Schema.Json,
  lane: LaneId,
  why: ConfirmReason,
  /** Where the lane's text from outside came from, by the log. An agent of an earlier Choir names none. */
  sources: Schema.optionalKey(Sources),
  /** The files that it hands out, or that a command names, by the agent. It uses no others: one that was changed meanwhile is refused. */
  files: Schema.optionalKey(Schema.Array(AttachedFile).check(Schema.isMaxLength(ATTACHED_FILES_MAX))),
  /** It may do what files of the workspace say that are not among `files`, so that no grant covers it. */
  reads_unnamed: Schema.optionalKey(Schema.Literal(true))
})
export type ConfirmTool = typeof ConfirmTool.Type

/** The status of a request, as its agent sees it. The agent itself keeps track of what follows an approval. */
export const AskedApproval = Schema.Struct({
  approval_id: ApprovalId,
  status: Schema.Literals(["pending", ...Resolution.literals]),
  /** The standing grant that approved it instead of a tap. */
  grant_id: Schema.optionalKey(GrantId),
  /** The words of the person who rejected it. */
  reason: Schema.optionalKey(Schema.String)
})
export type AskedApproval = typeof AskedApproval.Type
