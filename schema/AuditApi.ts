/** The audit rows as an operator reads them (R77). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId } from "./Ids.ts"

/** A row of `choirctl audit`: who asked for what and what became of it. Names and reasons, never a secret's value. */
export const AuditRow = Schema.Struct({
  audit_id: Schema.String,
  /** When the row was written; `since` is when the first of its `count` equal refusals came. */
  at: Schema.String,
  since: Schema.String,
  who: Schema.String,
  action: Schema.String,
  session_id: Schema.NullOr(Schema.String),
  agent_id: Schema.NullOr(Schema.String),
  count: Schema.Natural,
  detail: Schema.Json
})
export type AuditRow = typeof AuditRow.Type

export const AuditApi = HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("list", "/audit", {
    query: { last: Schema.optionalKey(Schema.FiniteFromString), agent_id: Schema.optionalKey(AgentId) },
    success: Schema.Array(AuditRow),
    error: ApiErrors
  })
)
