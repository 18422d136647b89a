/**
 * What an operator may ask of choird, on `socks/choird.sock` alone (D10). Shapes are the ones `choirctl --json` prints
 * (docs/operating.md); names are snake_case, as in config.json and the tables.
 */
import { Schema } from "effect"
import { Sse } from "effect/encoding"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { Approvals } from "./ApprovalApi.ts"
import { Configuration } from "./ConfigApi.ts"
import { AuditApi } from "./AuditApi.ts"
import { DatabaseApi } from "./DatabaseApi.ts"
import { CoreReport } from "./Core.ts"
import { ChoirEvent, OpaqueEvent } from "./Event.ts"
import { AgentId, InboxId, JobName, LaneId, ResourceName, Rev, SessionId, Sha256, SignalId } from "./Ids.ts"
import { Progress } from "./Progress.ts"
import { DmNames, NAMED_BINDINGS, ResourceBindings } from "./ResourceBindings.ts"
import { SchemaErrors } from "./SchemaErrors.ts"
import { ResumeApi } from "./ResumeApi.ts"
import { DiskStatus, RetentionApi } from "./RetentionApi.ts"
import { SessionDetailApi } from "./SessionDetailApi.ts"
import { UpdateApi } from "./UpdateApi.ts"
import { SkillApi } from "./SkillApi.ts"
import { WorkspaceApi } from "./WorkspaceApi.ts"
import { SessionStatus } from "./SessionStatus.ts"

/** A `paused` agent is stopped until choird starts it again by itself; messages are taken meanwhile. */
export const AgentStatus = Schema.Literals([
  "stopped",
  "building",
  "starting",
  "running",
  "stopping",
  "paused",
  "crashed"
])
export type AgentStatus = typeof AgentStatus.Type

/** What is spent and what the limit is; `limit: null` is no limit. */
const Spent = Schema.Struct({ used: Schema.Finite, limit: Schema.NullOr(Schema.Finite) })

/** Money spent. `unpriced` names the models of the agent whose calls cost an unknown amount on top. */
const SpentUsd = Schema.Struct({
  ...Spent.fields,
  unpriced: Schema.optionalKey(Schema.Array(ResourceName))
})

/** How a running agent is doing (R78). */
const AgentHealth = Schema.Struct({
  epoch: Schema.Natural,
  /** Revisions that the agent spoke of in its last heartbeat and choird has not acknowledged; null before the first. */
  lag_revs: Schema.NullOr(Schema.Natural),
  /** Since its last sign of life. */
  heartbeat_age_ms: Schema.NullOr(Schema.Natural),
  /** Its crashes in the breaker's window, and how many stop it (R9). */
  crashes: Schema.Natural,
  crashes_max: Schema.Natural,
  tokens: Spent,
  cost_usd: SpentUsd
})
export type AgentHealth = typeof AgentHealth.Type

/** A row of `agent list`. */
export const AgentSummary = Schema.Struct({
  agent_id: AgentId,
  status: AgentStatus,
  session_id: Schema.NullOr(SessionId),
  image_version: Schema.NullOr(Schema.String),
  uptime_ms: Schema.Natural,
  config_version: Schema.Natural,
  /** The newest version, there only while a running agent has an older one (R58). */
  config_version_latest: Schema.optionalKey(Schema.Natural),
  /** There while the agent runs and the database answers. */
  health: Schema.optionalKey(AgentHealth)
})
export type AgentSummary = typeof AgentSummary.Type

export const AgentDetail = Schema.Struct({
  agent_id: AgentId,
  status: AgentStatus,
  session_id: Schema.NullOr(SessionId),
  lanes: Schema.Array(
    Schema.Struct({
      lane: LaneId,
      state: Schema.String,
      skill: Schema.NullOr(Schema.String),
      skill_state: Schema.NullOr(Schema.String),
      step: Schema.Natural
    })
  ),
  budgets: Schema.Struct({ tokens: Spent, tool_calls: Spent, cost_usd: SpentUsd, core_jobs: Spent }),
  resource_bindings: Schema.NullOr(ResourceBindings),
  /** Resources that it keeps from other agents, from its start to its stop. */
  leases: Schema.Array(Schema.Struct({ kind: Schema.String, name: Schema.String })),
  uptime_ms: Schema.Natural,
  config_version: Schema.Natural,
  /** As in {@link AgentSummary}. */
  config_version_latest: Schema.optionalKey(Schema.Natural),
  last_rev: Rev,
  acked_rev: Rev,
  health: Schema.optionalKey(AgentHealth),
  /** How many approvals wait for a person. */
  approvals_pending: Schema.Natural,
  /** Why the agent is where it is when that needs saying: the last crash, the breaker, a frozen session. */
  reason: Schema.NullOr(Schema.String)
})
export type AgentDetail = typeof AgentDetail.Type

export const SessionSummary = Schema.Struct({
  session_id: SessionId,
  agent_id: AgentId,
  status: SessionStatus,
  started_at: Schema.String,
  ended_at: Schema.NullOr(Schema.String),
  last_rev: Rev
})
export type SessionSummary = typeof SessionSummary.Type

/** An event with its place in the chain; without session_id, as `session events` prints it. */
export const PrintedEvent = Schema.Struct({ event: ChoirEvent, hash: Sha256 })
export type PrintedEvent = typeof PrintedEvent.Type

/** A line of a session's log: an event, or what only a later Choir knows. */
export const LogLine = Schema.Union([PrintedEvent, Schema.Struct({ opaque: OpaqueEvent, hash: Sha256 })])
export type LogLine = typeof LogLine.Type
export const isPrintedEvent = (line: LogLine): line is PrintedEvent => "event" in line

export const CoreSummary = Schema.Struct({
  job_name: JobName,
  state: Schema.String,
  step: Schema.Natural,
  started_at: Schema.String,
  /** What it said of itself last. */
  report: Schema.optionalKey(CoreReport)
})
export type CoreSummary = typeof CoreSummary.Type

/** A named model or voice provider of config.json. */
export const ModelSummary = Schema.Struct({
  name: ResourceName,
  type: Schema.Literals(["llm", "tts"]),
  provider: Schema.String,
  model: Schema.String
})
export type ModelSummary = typeof ModelSummary.Type

/** What an agent uses, or would at its next start, and the defaults of config.json that it goes back to (E14). */
export const AgentModels = Schema.Struct({
  agent_id: AgentId,
  llm: ResourceName,
  core_llm: ResourceName,
  default_llm: ResourceName,
  default_core_llm: ResourceName,
  voice_profile: Schema.NullOr(ResourceName),
  /** Whether the running agent has the newest configuration; it has after its next heartbeat. */
  in_use: Schema.Boolean
})
export type AgentModels = typeof AgentModels.Type

/** The idempotency key of a client: any text of 1 to 80 of these characters, usually a UUID. */
const ClientId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._:-]{1,80}$/u))

/** How a signal is asked for: the same `request_id` and body make one signal; `wait_ms` is how long to wait for its event. */
const asking = { request_id: Schema.optionalKey(ClientId), wait_ms: Schema.optionalKey(Schema.Natural) } as const

/** A signal and the event that it ended in; `rev` is null while there is none, `refused` says why nothing came of it. */
const signalled = { signal_id: SignalId, rev: Schema.NullOr(Rev), refused: Schema.NullOr(Schema.String) } as const

export const SignalSummary = Schema.Struct(signalled)
export type SignalSummary = typeof SignalSummary.Type

/**
 * `problem` says at which revision and why the chain or the fold does not hold. `forgotten` counts payloads that were reduced and are
 * listed by a later event.
 */
export const Verification = Schema.Struct({
  ok: Schema.Boolean,
  events: Schema.Natural,
  head: Sha256,
  forgotten: Schema.optionalKey(Schema.Natural),
  /** The first event that only a later Choir knows: from there on the chain is proved, and nothing is folded. */
  newer: Schema.optionalKey(Schema.Struct({ rev: Rev, v: Schema.Natural, event_type: Schema.String })),
  problem: Schema.optionalKey(Schema.Struct({ rev: Rev, reason: Schema.String }))
})
export type Verification = typeof Verification.Type

export const WorkspaceSummary = Schema.Struct({
  name: ResourceName,
  path: Schema.String,
  leased_by: Schema.NullOr(AgentId),
  /** The room that it took on the disk when it was last counted, at least; absent before the first count. */
  used_bytes: Schema.optionalKey(Schema.Natural),
  /** `retention.workspace_mb`; null is no quota. */
  quota_bytes: Schema.optionalKey(Schema.NullOr(Schema.Natural))
})
export type WorkspaceSummary = typeof WorkspaceSummary.Type

export const SystemStatus = Schema.Struct({
  choird: Schema.Struct({
    version: Schema.String,
    uptime_ms: Schema.Natural,
    config_version: Schema.Natural,
    pid: Schema.Natural
  }),
  postgres: Schema.Struct({
    kind: Schema.Literals(["embedded", "postgres"]),
    version: Schema.String,
    pgvector: Schema.String,
    ok: Schema.Boolean
  }),
  runtime: Schema.Struct({
    type: Schema.Literals(["docker", "sandbox", "process"]),
    isolation: Schema.String,
    limits: Schema.Array(Schema.String),
    warnings: Schema.Array(Schema.String)
  }),
  gateways: Schema.Array(
    Schema.Struct({ name: ResourceName, type: Schema.String, ok: Schema.Boolean, detail: Schema.String })
  ),
  agents: Schema.Array(AgentSummary),
  /** The page for Prometheus and what holds its bearer token; absent where config.json has none. */
  metrics: Schema.optionalKey(
    Schema.Struct({
      url: Schema.String,
      token: Schema.Union([Schema.Struct({ file: Schema.String }), Schema.Struct({ secret: Schema.String })])
    })
  ),
  /** Of the home's file system; absent where it does not say. */
  disk: Schema.optionalKey(DiskStatus),
  /** How many approvals wait for a person; null while the database does not answer. */
  approvals: Schema.Struct({ pending: Schema.NullOr(Schema.Natural) }),
  warnings: Schema.Array(Schema.String)
})
export type SystemStatus = typeof SystemStatus.Type

/** Overrides of an agent's defaults for one run. `fresh` leaves the earlier session behind (D19). */
export const StartAgent = Schema.Struct({
  workspace: Schema.optionalKey(ResourceName),
  llm: Schema.optionalKey(ResourceName),
  core_llm: Schema.optionalKey(ResourceName),
  voice_profile: Schema.optionalKey(ResourceName),
  git_identity: Schema.optionalKey(ResourceName),
  notion: Schema.optionalKey(ResourceName),
  email: Schema.optionalKey(ResourceName),
  dm: Schema.optionalKey(DmNames),
  fresh: Schema.optionalKey(Schema.Boolean)
})
export type StartAgent = typeof StartAgent.Type

const { fresh: _, ...overrides } = StartAgent.fields
/** What a restart names anew. What an earlier start named stays, and everything else comes from the agent's defaults. */
export const RestartAgent = Schema.Struct(overrides)
export type RestartAgent = typeof RestartAgent.Type

/** A restarted agent. `keeps` are bindings that its start named and whose default is another one; null is no default. */
export const RestartedAgent = Schema.Struct({
  ...AgentSummary.fields,
  keeps: Schema.Array(
    Schema.Struct({
      binding: Schema.Literals(NAMED_BINDINGS),
      name: Schema.String,
      default: Schema.NullOr(Schema.String)
    })
  )
})
export type RestartedAgent = typeof RestartedAgent.Type

export const BuildReport = Schema.Struct({
  agent_id: AgentId,
  image_version: Schema.String,
  path: Schema.String,
  built: Schema.Boolean,
  warnings: Schema.Array(Schema.String)
})

export const BuildProgress = Progress(BuildReport)
export type BuildProgress = typeof BuildProgress.Type

/** What a console client sees. `outbox_id` is acknowledged once it is on the screen. */
export const ChatEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("message"),
    outbox_id: Schema.String,
    source: Schema.String,
    part: Schema.Natural,
    /**
     * `error`, `outage` and `stopped` stand in the place of a reply: what failed needs somebody to change something, or may work at the
     * next try, or was stopped by the person.
     */
    kind: Schema.Literals(["reply", "notice", "report", "refusal", "error", "outage", "stopped"]),
    text: Schema.String,
    in_reply_to: Schema.NullOr(InboxId),
    /** The beginning of the message that it answers, which may have been sent in another terminal. */
    question: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  /** What edge and the cores are doing, for a person who waits. */
  Schema.Struct({
    type: Schema.Literal("activity"),
    edge: Schema.String,
    /** Whether edge does nothing until a person has decided about its calls. */
    waits: Schema.optionalKey(Schema.Boolean),
    cores: Schema.Array(JobName),
    /** What these jobs said of themselves last; some have said nothing. */
    reports: Schema.optionalKey(Schema.Array(Schema.Struct({ job_name: JobName, report: CoreReport })))
  }),
  /** Edge is idle, and no core job or report of this message's turn is left. */
  Schema.Struct({ type: Schema.Literal("settled"), inbox_id: InboxId }),
  Schema.Struct({ type: Schema.Literal("agent"), status: AgentStatus, reason: Schema.NullOr(Schema.String) })
])
export type ChatEvent = typeof ChatEvent.Type

const agent = { id: AgentId } as const
const session = { id: SessionId } as const
const error = ApiErrors
const ndjson = <S extends Schema.Constraint>(schema: S) => HttpApiSchema.StreamNdjson({ schema })

const System = HttpApiGroup.make("system").add(
  HttpApiEndpoint.get("status", "/status", { success: SystemStatus, error }),
  HttpApiEndpoint.get("config", "/config", { success: Schema.Json, error }),
  HttpApiEndpoint.get("workspaces", "/workspaces", { success: Schema.Array(WorkspaceSummary), error }),
  HttpApiEndpoint.get("models", "/models", { success: Schema.Array(ModelSummary), error }),
  HttpApiEndpoint.post("shutdown", "/shutdown", { success: Schema.Struct({ ok: Schema.Literal(true) }), error })
)

const Agents = HttpApiGroup.make("agents").add(
  HttpApiEndpoint.get("list", "/agents", { success: Schema.Array(AgentSummary), error }),
  HttpApiEndpoint.get("status", "/agents/:id", { params: agent, success: AgentDetail, error }),
  HttpApiEndpoint.post("build", "/agents/:id/build", {
    params: agent,
    payload: Schema.Struct({ force: Schema.optionalKey(Schema.Boolean) }),
    success: ndjson(BuildProgress),
    error
  }),
  HttpApiEndpoint.post("start", "/agents/:id/start", {
    params: agent,
    payload: StartAgent,
    success: AgentSummary,
    error
  }),
  HttpApiEndpoint.post("stop", "/agents/:id/stop", { params: agent, success: AgentSummary, error }),
  HttpApiEndpoint.post("restart", "/agents/:id/restart", {
    params: agent,
    payload: RestartAgent,
    success: RestartedAgent,
    error
  }),
  HttpApiEndpoint.get("models", "/agents/:id/models", { params: agent, success: AgentModels, error }),
  HttpApiEndpoint.post("setModels", "/agents/:id/models", {
    params: agent,
    payload: Schema.Struct({ llm: Schema.optionalKey(ResourceName), core_llm: Schema.optionalKey(ResourceName) }),
    success: AgentModels,
    error
  })
)

const Sessions = HttpApiGroup.make("sessions").add(
  HttpApiEndpoint.get("list", "/sessions", {
    query: { agent_id: Schema.optionalKey(AgentId) },
    success: Schema.Array(SessionSummary),
    error
  }),
  HttpApiEndpoint.get("events", "/sessions/:id/events", {
    params: session,
    query: {
      from: Schema.optionalKey(Schema.FiniteFromString),
      last: Schema.optionalKey(Schema.FiniteFromString),
      follow: Schema.optionalKey(Schema.Literals(["true", "false"]))
    },
    success: ndjson(LogLine),
    error
  }),
  HttpApiEndpoint.get("cores", "/sessions/:id/cores", { params: session, success: Schema.Array(CoreSummary), error }),
  HttpApiEndpoint.post("cancel", "/sessions/:id/cancel", {
    params: session,
    payload: Schema.Struct({ job_name: Schema.optionalKey(JobName), ...asking }),
    success: Schema.Struct({ job_name: JobName, ...signalled }),
    error
  }),
  HttpApiEndpoint.post("stopTurn", "/sessions/:id/stop", {
    params: session,
    payload: Schema.Struct(asking),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("inject", "/sessions/:id/inject", {
    params: session,
    payload: Schema.Struct({ text: Schema.String, ...asking }),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("compact", "/sessions/:id/compact", {
    params: session,
    payload: Schema.Struct({ lane: Schema.optionalKey(LaneId), ...asking }),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("verify", "/sessions/:id/verify", { params: session, success: Verification, error })
)

/** What choird itself answers to a command. */
const ChatAnswer = Schema.Struct({ kind: Schema.Literals(["notice", "refusal"]), text: Schema.String })
export type ChatAnswer = typeof ChatAnswer.Type

/** SSE. A client that reconnects is sent again what it has not acknowledged. */
export const ChatEvents = Schema.Struct({ ...Sse.EventEncoded.fields, data: Schema.fromJsonString(ChatEvent) })

const Chat = HttpApiGroup.make("chat").add(
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

export class OperatorApi extends HttpApi.make("choir-operator")
  .add(
    System,
    DatabaseApi,
    Agents,
    Sessions,
    UpdateApi,
    SessionDetailApi,
    ResumeApi,
    SkillApi,
    Chat,
    Approvals,
    Configuration,
    AuditApi,
    WorkspaceApi,
    RetentionApi
  )
  .middleware(SchemaErrors)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" }) {}
