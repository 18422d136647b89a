/** One session as `choirctl session show` prints it. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, Epoch, Rev, SessionId } from "./Ids.ts"
import { ResourceBindings } from "./ResourceBindings.ts"
import { SessionStatus } from "./SessionStatus.ts"
import { Summary } from "./Summary.ts"

export const SessionDetail = Schema.Struct({
  session_id: SessionId,
  agent_id: AgentId,
  status: SessionStatus,
  started_at: Schema.String,
  ended_at: Schema.NullOr(Schema.String),
  /** The newest start of the agent within the session (E13). */
  epoch: Epoch,
  /** The newest acknowledged revision, and the digest of the chain there. */
  last_rev: Rev,
  head: Schema.String,
  image_version: Schema.String,
  resource_bindings: ResourceBindings,
  /** Why only `agent start --fresh` leaves it behind; null for a session that can be resumed. */
  frozen_reason: Schema.NullOr(Schema.String),
  /** The first event that only a later Choir knows, for which the session does not run (D53); absent in all others. */
  newer: Schema.optionalKey(
    Schema.Struct({
      rev: Rev,
      v: Schema.Finite,
      event_type: Schema.String,
      choird_version: Schema.NullOr(Schema.String)
    })
  ),
  /** What its agent summed up at its last graceful stop; null where there was none, or the model gave none. */
  summary: Schema.NullOr(Summary)
})
export type SessionDetail = typeof SessionDetail.Type

export const SessionDetailApi = HttpApiGroup.make("session").add(
  HttpApiEndpoint.get("show", "/sessions/:id", { params: { id: SessionId }, success: SessionDetail, error: ApiErrors })
)
