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
  hint: Schema.String,
  /** There is no image: the agent was never built on this home, as after a restore, and nothing is broken. */
  unbuilt: Schema.optionalKey(Schema.Boolean)
}) {
  override get message() {
    return this.reason
  }
}

export const notReady = (agent_id: AgentId, reason: string, hint: string) =>
  new AgentRefused({ kind: "NOT_READY", agent_id, reason, hint })
