/** A row for each action that was refused, and for each that changed who may do what (R77). */
import { Context, type Effect, type Schema } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"

export interface AuditEntry {
  /** Who asked: `agent:<id>`, `operator`, `gateway:<name>`. */
  readonly who: string
  /** What was asked, such as `rpc.GET_SECRETS`. */
  readonly action: string
  readonly session_id?: SessionId
  readonly agent_id?: AgentId
  /** Names and reasons, never a secret's value. */
  readonly detail: Schema.Json
}

/** Writes audit rows; a failure is logged and never stops what is audited. */
export class Audit extends Context.Service<Audit, { record(entry: AuditEntry): Effect.Effect<void> }>()(
  "choir/choird/Audit"
) {}
