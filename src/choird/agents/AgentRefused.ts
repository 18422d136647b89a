/** The refusal of a request about an agent. */
import { Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"

/** Says what to do about it. `kind` is also the API's error type. */
export class AgentRefused extends Schema.TaggedError<AgentRefused>()("AgentRefused", {
  kind: Schema.Literals([
    "UNKNOWN_AGENT",
    "ALREADY_RUNNING",
    "NOT_RUNNING",
    "NOT_READY",
    "FROZEN",
    "NEWER_EVENTS",
    "BUSY",
    "START_FAILED"
  ]),
  agent_id: AgentId,
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}
