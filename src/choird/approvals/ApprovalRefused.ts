/** The refusal of a request or a decision, with what to do about it. */
import { Schema } from "effect"
import type { ApprovalRow } from "./approvalRows.ts"
import { type Refusal, resolutionOf } from "./approvalStatus.ts"

/** `kind` is also the API's error type. */
export class ApprovalRefused extends Schema.TaggedError<ApprovalRefused>()("ApprovalRefused", {
  kind: Schema.Literals([
    "NOT_AVAILABLE",
    "BAD_REQUEST",
    "TOO_LARGE",
    "CALL_ID_REUSED",
    "NOT_OPEN",
    "APPROVALS_FULL",
    "RATE_LIMITED",
    "UNKNOWN_APPROVAL",
    "ALREADY_DECIDED",
    "EXPIRED",
    "SESSION_ENDED",
    "CHANGED",
    "NOT_ALONE",
    "NO_GRANT",
    "GRANTS_FULL",
    "REPOSITORY"
  ]),
  reason: Schema.String,
  hint: Schema.String,
  /** The time after which the same request may come again, if nothing else is wrong. */
  retry_after_ms: Schema.optionalKey(Schema.Natural)
}) {
  override get message() {
    return this.reason
  }
}

export const refused = (kind: ApprovalRefused["kind"], reason: string, hint: string) =>
  new ApprovalRefused({ kind, reason, hint })

export const unknownApproval = (approval_id: string) =>
  refused("UNKNOWN_APPROVAL", `there is no approval ${approval_id.slice(0, 20)}`, "choirctl approval list")

/** The refusal of a decision on a stored row. */
export const refusalOf = (row: ApprovalRow, refusal: Refusal) => {
  const { approval_id, resolved_at, resolved_by, status } = row
  const show = `choirctl approval show ${approval_id}`
  switch (refusal) {
    case "ALREADY_DECIDED":
      return refused(
        refusal,
        `approval ${approval_id} was ${resolutionOf(status) ?? status} at ${resolved_at ?? "an unknown time"} by ${resolved_by ?? "nobody"}`,
        show
      )
    case "EXPIRED":
      return refused(refusal, `approval ${approval_id} expired at ${row.expires_at}`, "ask the agent to try again")
    case "SESSION_ENDED":
      return refused(refusal, `the session of approval ${approval_id} has ended, so it expired`, "ask the agent again")
    case "CHANGED":
      return refused(refusal, `the hash of approval ${approval_id} is different: read the request again`, show)
    case "NO_GRANT":
      return refused(refusal, `approval ${approval_id} cannot become a standing grant: approve it once`, show)
    case "GRANTS_FULL":
      return refused(
        refusal,
        `${row.agent_id} already has the maximum number of grants: revoke one first`,
        "choirctl grant list"
      )
    case "NOT_ALONE":
      return refused(
        refusal,
        `approval ${approval_id} is not the only pending approval that was delivered`,
        "choirctl approval list"
      )
  }
}
