/** A trial that is not begun. */
import { Schema } from "effect"

export class TrialRefused extends Schema.TaggedError<TrialRefused>()("TrialRefused", {
  kind: Schema.Literals([
    "UNKNOWN_AGENT",
    "UNKNOWN_TOOL",
    "UNKNOWN_SKILL",
    "UNKNOWN_MODEL",
    "NO_IMAGE",
    "NOT_READY",
    "NOT_OFFERED",
    "TRIAL_FAILED"
  ]),
  reason: Schema.String,
  hint: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    return this.reason
  }
}
