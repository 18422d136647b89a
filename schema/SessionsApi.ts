/** Sessions as an operator reads, steers, resumes and verifies them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { CoreReport, PlanStep } from "./Core.ts"
import { ChoirEvent, OpaqueEvent } from "./Event.ts"
import { AgentId, ClientId, Epoch, JobName, LaneId, Rev, SessionId, Sha256, SignalId } from "./Ids.ts"
import { PromptContext } from "./PromptContext.ts"
import { ResourceBindings } from "./ResourceBindings.ts"
import { SkillName } from "./Skill.ts"
import { SessionStatus } from "./SessionStatus.ts"
import { Summary } from "./Summary.ts"

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
  /** Of a running job; one that ended is in its agent's job runs. */
  lifecycle: Schema.optionalKey(Schema.Literals(["PENDING", "INITIALIZING", "READY", "BUSY"])),
  /** Its profile and its pool. */
  agent_type: Schema.optionalKey(Schema.String),
  pool: Schema.optionalKey(Schema.String),
  step: Schema.Natural,
  /** When it began, or was resumed. */
  started_at: Schema.String,
  /** Its work over all its lives. Commands may have changed more files. */
  tool_calls: Schema.Natural,
  files_read: Schema.Natural,
  files_changed: Schema.Natural,
  commands: Schema.Natural,
  tokens: Schema.Natural,
  ran_ms: Schema.Natural,
  cost_usd: Schema.optionalKey(Schema.Finite),
  last_tool: Schema.optionalKey(Schema.String),
  /** The first line of its task. */
  task: Schema.optionalKey(Schema.String),
  /** Its newest plan. */
  plan: Schema.optionalKey(Schema.Array(PlanStep)),
  /** Its last report. */
  report: Schema.optionalKey(CoreReport),
  /** The question whose answer it waits for. */
  question: Schema.optionalKey(Schema.String),
  /** Since when it waits for a provider that fails, and how that failed. */
  provider_wait: Schema.optionalKey(Schema.Struct({ since: Schema.String, cause: Schema.String }))
})
export type CoreSummary = typeof CoreSummary.Type

/** How a signal is asked for: the same `request_id` and body make one signal; `wait_ms` is how long to wait for its event. */
const asking = { request_id: Schema.optionalKey(ClientId), wait_ms: Schema.optionalKey(Schema.Natural) } as const

/** A signal and the event that it ended in; `rev` is null while there is none, `refused` says why nothing came of it. */
const signalled = { signal_id: SignalId, rev: Schema.NullOr(Rev), refused: Schema.NullOr(Schema.String) } as const

export const SignalSummary = Schema.Struct(signalled)
export type SignalSummary = typeof SignalSummary.Type

/** An order for a new conversation: the session that it closes, and the one that follows, null while that does not run. */
export const RenewedSession = Schema.Struct({ ...signalled, closed: SessionId, session_id: Schema.NullOr(SessionId) })
export type RenewedSession = typeof RenewedSession.Type

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

const session = { id: SessionId } as const
const error = ApiErrors
const ndjson = <S extends Schema.Constraint>(schema: S) => HttpApiSchema.StreamNdjson({ schema })

export const SessionsApi = HttpApiGroup.make("sessions").add(
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
  HttpApiEndpoint.get("context", "/sessions/:id/context", {
    params: session,
    query: { lane: Schema.optionalKey(LaneId) },
    success: PromptContext,
    error
  }),
  HttpApiEndpoint.post("cancel", "/sessions/:id/cancel", {
    params: session,
    payload: Schema.Struct({ job_name: Schema.optionalKey(JobName), ...asking }),
    success: Schema.Struct({ job_name: JobName, ...signalled }),
    error
  }),
  HttpApiEndpoint.post("startSkill", "/sessions/:id/skill", {
    params: session,
    payload: Schema.Struct({ skill: SkillName, input: Schema.optionalKey(Schema.Json), ...asking }),
    success: Schema.Struct({ job_name: JobName, ...signalled }),
    error
  }),
  HttpApiEndpoint.post("cancelSkill", "/sessions/:id/skill/cancel", {
    params: session,
    payload: Schema.Struct({ skill: SkillName, ...asking }),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("stopTurn", "/sessions/:id/stop", {
    params: session,
    payload: Schema.Struct(asking),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("renew", "/sessions/:id/new", {
    params: session,
    payload: Schema.Struct({ end_jobs: Schema.optionalKey(Schema.Boolean), ...asking }),
    success: RenewedSession,
    error
  }),
  HttpApiEndpoint.post("inject", "/sessions/:id/inject", {
    params: session,
    payload: Schema.Struct({ text: Schema.String, ...asking }),
    success: SignalSummary,
    error
  }),
  HttpApiEndpoint.post("answer", "/sessions/:id/answer", {
    params: session,
    payload: Schema.Struct({ text: Schema.String, job_name: Schema.optionalKey(JobName), ...asking }),
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
  /** Why it cannot be resumed, so that the agent needs a new session (`agent start --fresh`); null where it can. */
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
  /** The summary that its agent made at its last graceful stop; null where there was none, or the model gave none. */
  summary: Schema.NullOr(Summary)
})
export type SessionDetail = typeof SessionDetail.Type

export const SessionDetailApi = HttpApiGroup.make("session").add(
  HttpApiEndpoint.get("show", "/sessions/:id", { params: { id: SessionId }, success: SessionDetail, error: ApiErrors })
)

/** The agent runs in this session again. `epoch` counts its starts within it (E13). */
export const ResumedSession = Schema.Struct({ session_id: SessionId, agent_id: AgentId, epoch: Epoch })
export type ResumedSession = typeof ResumedSession.Type

export const ResumeApi = HttpApiGroup.make("resume").add(
  HttpApiEndpoint.post("resume", "/sessions/:id/resume", {
    params: { id: SessionId },
    success: ResumedSession,
    error: ApiErrors
  })
)
