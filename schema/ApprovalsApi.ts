/** Approvals as an operator sees and decides them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { ApprovalStatus } from "./Approval.ts"
import { GrantScope, GrantSummary } from "./Grant.ts"
import { AgentId, ApprovalId, CallId, GrantId, LaneId, SessionId, Sha256 } from "./Ids.ts"

/** A row of `approval list`. */
export const ApprovalSummary = Schema.Struct({
  approval_id: ApprovalId,
  agent_id: AgentId,
  session_id: SessionId,
  request_type: Schema.String,
  summary: Schema.String,
  status: ApprovalStatus,
  created_at: Schema.String,
  expires_at: Schema.String
})
export type ApprovalSummary = typeof ApprovalSummary.Type

/** Everything of an approval. `text` is what choird made of the payload for a person, `hash` the digest of the payload. */
export const ApprovalDetail = Schema.Struct({
  ...ApprovalSummary.fields,
  call_id: CallId,
  lane: LaneId,
  text: Schema.String,
  payload: Schema.Json,
  hash: Sha256,
  resolved_at: Schema.NullOr(Schema.String),
  resolved_by: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Schema.String),
  /** The next step of choird for an approved proposal, or its last one; null before it began, and for calls. */
  step: Schema.NullOr(Schema.String)
})
export type ApprovalDetail = typeof ApprovalDetail.Type

/** The first 8 hex digits of the payload's digest, as the person saw them (R54). */
export const Hash8 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{8}$/u, { message: "a hash is 8 of 0-9 and a-f" }))

const params = { id: ApprovalId } as const
const grantParams = { id: GrantId } as const
const error = ApiErrors

export const Approvals = HttpApiGroup.make("approvals").add(
  HttpApiEndpoint.get("list", "/approvals", {
    query: { agent_id: Schema.optionalKey(AgentId), all: Schema.optionalKey(Schema.Literals(["true", "false"])) },
    success: Schema.Array(ApprovalSummary),
    error
  }),
  HttpApiEndpoint.get("show", "/approvals/:id", { params, success: ApprovalDetail, error }),
  HttpApiEndpoint.get("grants", "/grants", {
    query: { agent_id: Schema.optionalKey(AgentId), all: Schema.optionalKey(Schema.Literals(["true", "false"])) },
    success: Schema.Array(GrantSummary),
    error
  }),
  HttpApiEndpoint.post("revoke", "/grants/:id/revoke", { params: grantParams, success: GrantSummary, error }),
  HttpApiEndpoint.post("approve", "/approvals/:id/approve", {
    params,
    payload: Schema.Struct({ hash: Hash8, grant: Schema.optionalKey(GrantScope) }),
    success: ApprovalDetail,
    error
  }),
  HttpApiEndpoint.post("reject", "/approvals/:id/reject", {
    params,
    payload: Schema.Struct({ hash: Hash8, reason: Schema.optionalKey(Schema.String) }),
    success: ApprovalDetail,
    error
  })
)
