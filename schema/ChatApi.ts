/** The console as a channel: messages of a person, and what an agent says and does. */
import { Schema } from "effect"
import { Sse } from "effect/encoding"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { AgentStatus } from "./AgentSummary.ts"
import { ApiErrors } from "./ApiError.ts"
import { CoreReport } from "./Core.ts"
import { AgentId, ClientId, InboxId, JobName } from "./Ids.ts"

/** An event that a console client receives. `outbox_id` is acknowledged once it is on the screen. */
export const ChatEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("message"),
    outbox_id: Schema.String,
    source: Schema.String,
    part: Schema.Natural,
    /**
     * `error`, `outage` and `stopped` replace a reply: the turn failed until somebody changes something, may work at the next try, or
     * was stopped by the person.
     */
    kind: Schema.Literals(["reply", "notice", "report", "refusal", "error", "outage", "stopped"]),
    text: Schema.String,
    in_reply_to: Schema.NullOr(InboxId),
    /** The beginning of the message that it answers, which may have been sent in another terminal. */
    question: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  /** The answer so far, while the model writes it; the message that follows takes its place. */
  Schema.Struct({
    type: Schema.Literal("draft"),
    in_reply_to: InboxId,
    text: Schema.String,
    /** Whether a report on a job of the message is written; else its answer. */
    reporting: Schema.optionalKey(Schema.Boolean)
  }),
  /** The activity of edge and the cores, for a person who waits. */
  Schema.Struct({
    type: Schema.Literal("activity"),
    edge: Schema.String,
    /** Whether edge does nothing until a person has decided about its calls. */
    waits: Schema.optionalKey(Schema.Boolean),
    /** Whether edge makes a report on a job, or is about to: before its first output its state is still EDGE_IDLE. */
    reporting: Schema.optionalKey(Schema.Boolean),
    /** The tool that edge runs, as the model named it. */
    tool: Schema.optionalKey(Schema.String),
    cores: Schema.Array(JobName),
    /** The last report of each of these jobs; some have none. */
    reports: Schema.optionalKey(Schema.Array(Schema.Struct({ job_name: JobName, report: CoreReport })))
  }),
  /** Edge is idle, and no core job or report of this message's turn is left. */
  Schema.Struct({ type: Schema.Literal("settled"), inbox_id: InboxId }),
  Schema.Struct({ type: Schema.Literal("agent"), status: AgentStatus, reason: Schema.NullOr(Schema.String) })
])
export type ChatEvent = typeof ChatEvent.Type

/** An answer of choird itself to a command. */
const ChatAnswer = Schema.Struct({ kind: Schema.Literals(["notice", "refusal"]), text: Schema.String })
export type ChatAnswer = typeof ChatAnswer.Type

/** SSE. A client that reconnects is sent again what it has not acknowledged. */
export const ChatEvents = Schema.Struct({ ...Sse.EventEncoded.fields, data: Schema.fromJsonString(ChatEvent) })

const agent = { id: AgentId } as const
const error = ApiErrors

export const ChatApi = HttpApiGroup.make("chat").add(
  HttpApiEndpoint.post("send", "/chat/:id/messages", {
    params: agent,
    payload: Schema.Struct({ client_id: ClientId, text: Schema.NonEmptyString }),
    success: Schema.Struct({ inbox_id: InboxId, position: Schema.Natural }),
    error
  }),
  /** Does what a command of the chat says; `answer` is null for a text that is none, and therefore a message. */
  HttpApiEndpoint.post("command", "/chat/:id/commands", {
    params: agent,
    payload: Schema.Struct({ client_id: ClientId, text: Schema.NonEmptyString }),
    success: Schema.Struct({ answer: Schema.NullOr(ChatAnswer) }),
    error
  }),
  HttpApiEndpoint.get("stream", "/chat/:id/events", {
    params: agent,
    success: HttpApiSchema.StreamSse({ events: ChatEvents }),
    error
  }),
  HttpApiEndpoint.post("ack", "/chat/:id/ack", {
    params: agent,
    payload: Schema.Struct({ outbox_ids: Schema.Array(Schema.String) }),
    success: Schema.Struct({ acked: Schema.Natural }),
    error
  })
)
