import { Schema } from "effect"

/** Why an approval is not asked for, not found or not decided, with what helps. `kind` is also the API's error type. */
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
    "REPOSITORY"
  ]),
  reason: Schema.String,
  hint: Schema.String,
  /** When the same request may come again, where only time is missing. */
  retry_after_ms: Schema.optionalKey(Schema.Natural)
}) {
  override get message() {
    return this.reason
  }
}

export const refused = (kind: ApprovalRefused["kind"], reason: string, hint: string) =>
  new ApprovalRefused({ kind, reason, hint })
