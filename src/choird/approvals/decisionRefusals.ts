/** Why a decision does not count, in words that say what to do. Pure. */
import { refused } from "./ApprovalRefused.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { type Refusal, resolutionOf } from "./approvalStatus.ts"

export const unknownApproval = (approval_id: string) =>
  refused("UNKNOWN_APPROVAL", `there is no approval ${approval_id.slice(0, 20)}`, "choirctl approval list")

/** Of a row that is there. */
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
      return refused(refusal, `the hash of approval ${approval_id} is another one: look at what it is about`, show)
    case "NOT_ALONE":
      return refused(
        refusal,
        `approval ${approval_id} is not the one request that waits and was delivered`,
        "choirctl approval list"
      )
  }
}
