/**
 * The API of choird for agents: the eight verbs and the push stream (docs/protocol.md), over HTTP on the session's own Unix
 * socket or on TCP (E4). Names are snake_case, as on the wire. No verb can act on the host, and none can name another session.
 */
import { Context, Schema } from "effect"
import { Sse } from "effect/encoding"
import {
  HttpApi,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity
} from "effect/http-api"
import { ApiErrors, Unauthorized } from "./ApiError.ts"
import { AskedApproval } from "./Approval.ts"
import { AgentConfig } from "./AgentConfig.ts"
import { ChoirEvent, SentEvent, ToolStatus } from "./Event.ts"
import { AgentId, CallId, Epoch, InboxId, Rev, SecretName, SessionId, Sha256 } from "./Ids.ts"
import { PromptContext } from "./PromptContext.ts"
import { ResourceBindings } from "./ResourceBindings.ts"
import { SchemaErrors } from "./SchemaErrors.ts"
import { Signal } from "./Signal.ts"
import { Summary } from "./Summary.ts"

/** The caller, as its token proves. `superseded` is a token of an older epoch: it may learn that it is fenced, nothing more. */
export interface Caller {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly epoch: number
  readonly standing: "bootstrap" | "current" | "superseded"
  /** The running core job that the call is of, as its token proves (D35); absent for edge. */
  readonly job_id?: CallId
}
export class Lease extends Context.Service<Lease, Caller>()("choir/schema/Lease") {}

/** Reads the bearer token before anything of the body is decoded. */
export class LeaseAuth extends HttpApiMiddleware.Service<LeaseAuth, { provides: Lease }>()("choir/schema/LeaseAuth", {
  error: Unauthorized,
  security: { lease: HttpApiSecurity.bearer }
}) {}

/** Answers a repeated request id with its first reply (R28). */
export class OncePerRequest extends HttpApiMiddleware.Service<OncePerRequest, { requires: Lease }>()(
  "choir/schema/OncePerRequest",
  { error: ApiErrors }
) {}

/**
 * How far the calls of an agent are kept apart from each other by the kernel: `full`, `memory` without their signals and abstract sockets, or
 * `none`, where a tool with secrets runs beside no other instead.
 */
export const CallsApart = Schema.Literals(["full", "memory", "none"])
export type CallsApart = typeof CallsApart.Type

export const InitHello = Schema.Struct({
  agent_id: AgentId,
  session_id: SessionId,
  image_version: Schema.String,
  agent_version: Schema.String,
  tool_manifest_hash: Sha256,
  skill_manifest_hash: Sha256,
  /** Absent from an agent that does not look. */
  calls_apart: Schema.optionalKey(CallsApart),
  /** Asks for a further page of the tail, with the lease token. */
  tail_from: Schema.optionalKey(Rev)
})
export type InitHello = typeof InitHello.Type

/**
 * choird's fold of the events up to `rev`, whose digest is `hash` (docs/protocol.md, Snapshots): the tail's events up to there are kept
 * and not folded again. An agent that does not know the `fold_version`, or cannot read the `state`, asks for the tail from 1. At most
 * SNAPSHOT_BYTES_MAX.
 */
export const Snapshot = Schema.Struct({
  rev: Rev,
  hash: Sha256,
  fold_version: Schema.Natural,
  /** As `src/shared/session/snapshot.ts` writes and reads it. */
  state: Schema.Json,
  /** The place in the chain that the tail follows; revision 0 is before the first event. */
  tail_after: Schema.Struct({ rev: Rev, hash: Sha256 })
})
export type Snapshot = typeof Snapshot.Type

export const InitHelloReply = Schema.Struct({
  status: Schema.Literals(["fresh", "resumed"]),
  lease_token: Schema.String,
  epoch: Epoch,
  resource_bindings: ResourceBindings,
  config_version: Schema.Natural,
  config: AgentConfig,
  snapshot: Schema.optionalKey(Snapshot),
  tail_events: Schema.Array(ChoirEvent),
  tail_more: Schema.Boolean
})
export type InitHelloReply = typeof InitHelloReply.Type

/** Patches are the events (base_rev, new_rev], as they are chained from hash_prev to hash_new; an agent of a later Choir may send some that are not known here (D53). */
export const Heartbeat = Schema.Struct({
  epoch: Epoch,
  base_rev: Rev,
  new_rev: Rev,
  hash_prev: Sha256,
  hash_new: Sha256,
  patches: Schema.Array(SentEvent),
  config_version: Schema.Natural,
  timestamp: Schema.String
})
export type Heartbeat = typeof Heartbeat.Type

export const HeartbeatReply = Schema.Struct({
  ack_rev: Rev,
  action: Schema.Literals(["OK", "RESEND_FROM", "BACKOFF", "CONFLICT", "FENCED"]),
  resend_from: Schema.optionalKey(Rev),
  retry_after_ms: Schema.optionalKey(Schema.Natural),
  config_version_latest: Schema.Natural
})
export type HeartbeatReply = typeof HeartbeatReply.Type

/** The idempotency key of a request: any text of 1 to 64 of these characters, usually a UUID. */
export const RequestId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{1,64}$/u))

/** Characters of a draft; the rest of a longer answer comes with the answer. */
export const DRAFT_CHARS_MAX = 16_384

/**
 * The beginning of edge's answer to a message, or of a report on a job of it, while its model still writes it, for the person who waits. It is
 * shown and forgotten: the answer itself is an AgentMessage.
 */
export const Draft = Schema.Struct({
  inbox_id: InboxId,
  text: Schema.String.check(Schema.isMaxLength(DRAFT_CHARS_MAX)),
  /** Of a report on a job: the event that it is about. Without it, the draft is of the answer to the message itself. */
  report_rev: Schema.optionalKey(Rev)
})
export type Draft = typeof Draft.Type

/** An agent's words for people who wait. What its lanes do is read from the acknowledged log. */
export const ReportStatus = Schema.Struct({
  draft: Schema.optionalKey(Draft),
  /** The answer to a DescribeContext; without a `context` no prompt of the lane was made since the agent started. */
  described: Schema.optionalKey(Schema.Struct({ request_id: RequestId, context: Schema.optionalKey(PromptContext) }))
})
export type ReportStatus = typeof ReportStatus.Type

export const RequestApproval = Schema.Struct({
  request_type: Schema.String.check(Schema.isMaxLength(64)),
  payload: Schema.Json,
  call_id: CallId
})

export const TerminateSelf = Schema.Struct({
  reason: Schema.String,
  final_rev: Rev,
  final_hash: Sha256,
  summary: Schema.optionalKey(Summary)
})

const Ack = Schema.Struct({ ack: Schema.Literal(true) })

const Envelope = Schema.Struct({
  "x-choir-request-id": RequestId,
  "x-choir-session-id": SessionId,
  "x-choir-job": Schema.optionalKey(Schema.String)
})

const verb = <const Name extends string, P extends Schema.Top, S extends Schema.Top>(
  name: Name,
  payload: P,
  success: S
) =>
  HttpApiEndpoint.post(name, `/rpc/${name}`, { headers: Envelope, payload, success, error: ApiErrors }).middleware(
    OncePerRequest
  )

/** SSE events whose `id` is the row id of the signal; a computed signal has none. */
export const SignalEvents = Schema.Struct({ ...Sse.EventEncoded.fields, data: Schema.fromJsonString(Signal) })

const Rpc = HttpApiGroup.make("rpc")
  .add(
    verb("INIT_HELLO", InitHello, InitHelloReply),
    verb(
      "GET_SECRETS",
      Schema.Struct({ resources: Schema.Array(SecretName) }),
      Schema.Struct({
        secrets: Schema.Record(SecretName, Schema.String),
        /** Requested names that belong to no resource bound to the session. */
        unbound: Schema.optionalKey(Schema.Array(SecretName)),
        /** Requested names of bound secrets that have no value. */
        unset: Schema.optionalKey(Schema.Array(SecretName))
      })
    ),
    verb("HEARTBEAT", Heartbeat, HeartbeatReply),
    verb("REQUEST_APPROVAL", RequestApproval, AskedApproval),
    verb("REPORT_STATUS", ReportStatus, Ack),
    verb("TERMINATE_SELF", TerminateSelf, Ack),
    verb(
      "FETCH_DYNAMIC_CONFIG",
      Schema.Struct({ current_config_version: Schema.Natural }),
      Schema.Struct({ config_version: Schema.Natural, config: Schema.optionalKey(AgentConfig) })
    ),
    verb(
      "EXECUTE_HOST_TOOL",
      Schema.Struct({ tool_name: Schema.String, call_id: CallId, input: Schema.Json }),
      Schema.Struct({ call_id: CallId, status: ToolStatus, output: Schema.Json })
    ),
    HttpApiEndpoint.get("events", "/events", {
      headers: Schema.Struct({ "last-event-id": Schema.optionalKey(Schema.String) }),
      query: { session_id: SessionId },
      success: HttpApiSchema.StreamSse({ events: SignalEvents }),
      error: ApiErrors
    })
  )
  .middleware(SchemaErrors)
  .middleware(LeaseAuth)

/** Strict: an unknown key is an error. Only a body's first problem is reported: finding all of them in a hostile body takes seconds. */
export class AgentApi extends HttpApi.make("choir-agent")
  .add(Rpc)
  .annotate(HttpApi.PayloadParseOptions, { errors: "first", onExcessProperty: "error" }) {}
