/** The eight verbs and the push stream, each on the caller's own session and no other. */
import { Context, Deferred, Duration, Effect, Option, Redacted, Schema, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import {
  AgentApi,
  type Caller,
  type Heartbeat,
  Lease,
  type ReportStatus,
  type TerminateSelf
} from "#schema/AgentApi.ts"
import { isKnownEvent } from "#schema/Event.ts"
import { type CallId, type SecretName, type SessionId, SignalId } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import type { ApprovalRequest } from "#src/choird/approvals/askApproval.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { OfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { type HostRequest, HostTools } from "#src/choird/hosttools/HostTools.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { type Pushed, Signals } from "#src/choird/queues/Signals.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { count } from "#src/choird/logs/metrics.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { auditDenied, audited, denied, runOf, shareOf, words } from "./agentCaller.ts"
import { initHello } from "./initHello.ts"
import { CurrentOpenSession } from "#src/choird/listeners/OpenSession.ts"
import {
  badRequest,
  fromApprovalRefused,
  fromEventTooLarge,
  fromHostToolRefused,
  fromSessionUnknown,
  fromSessionUnreadable,
  notFlushed
} from "#src/choird/api/refusals.ts"
import { sseResponse } from "#src/choird/listeners/sse.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** The id to resume after, which the database must be able to hold. */
const resumeAfter = (header: string | undefined) => {
  if (header === undefined) return Effect.undefined
  return Option.match(Schema.decodeOption(SignalId)(header), {
    onSome: (id) =>
      rowId(id) === undefined ? Effect.fail(badRequest("last-event-id is too large")) : Effect.succeed(id),
    onNone: () => Effect.fail(badRequest("last-event-id must be the id of a signal"))
  })
}

/** Names of unbound secrets that an audit row keeps. */
const UNBOUND_AUDITED_MAX = 20

/** The values of bound secrets; of the others only the names. */
const secrets = Effect.fn("AgentApi.GET_SECRETS")(function* (caller: Caller, resources: ReadonlyArray<SecretName>) {
  const store = yield* ConfigStore
  const { bindings } = yield* runOf(caller, "GET_SECRETS")
  const bound = yield* store.secretsOf(bindings)
  const wanted = [...new Set(resources)]
  const unbound = wanted.filter((name) => !bound.has(name))
  if (unbound.length > 0)
    yield* audited(caller, "GET_SECRETS", {
      refused: "UNBOUND",
      names: unbound.slice(0, UNBOUND_AUDITED_MAX)
    })
  const asked = wanted.filter((name) => bound.has(name))
  const values = yield* store.secretValues(asked)
  const unset = asked.filter((name) => !values.has(name))
  return {
    secrets: Object.fromEntries([...values].map(([name, value]) => [name, Redacted.value(value)])),
    ...(unbound.length === 0 ? {} : { unbound }),
    ...(unset.length === 0 ? {} : { unset })
  }
})

/** True if the acknowledged log says that a call belongs to another lane than the one that asks (D35). */
const isOfAnother = ({ cores, edge }: SessionState, call_id: CallId, job_id: CallId | undefined): boolean => {
  const isHere = (calls: ReadonlyArray<OpenCall>) => calls.some((call) => call.call_id === call_id)
  if (isHere(edge.calls) || isHere(edge.parked?.calls ?? [])) return job_id !== undefined
  return [...cores.values()].some((core) => core.job_id !== job_id && isHere(core.calls))
}

/** Whether a person was asked about a call, by the acknowledged log. */
const isAskedAbout = ({ cores, edge }: SessionState, call_id: CallId): boolean =>
  [...edge.calls, ...(edge.parked?.calls ?? []), ...[...cores.values()].flatMap(({ calls }) => calls)].some(
    (call) => call.call_id === call_id && call.confirm !== undefined
  )

/** A run belongs to the epoch, not to the request: a repeated request finds it. */
const executeHostTool = Effect.fn("AgentApi.EXECUTE_HOST_TOOL")(function* (caller: Caller, request: HostRequest) {
  const events = yield* EventStore
  const hostTools = yield* HostTools
  const verb = "EXECUTE_HOST_TOOL"
  const session = yield* CurrentOpenSession
  if (session === undefined) return yield* denied(caller, verb, "it did not come through a session's socket")
  const { call_id, tool_name } = request
  const state = yield* Effect.mapError(databaseDefect(events.state(caller.session_id)), fromSessionUnreadable)
  if (isOfAnother(state, call_id, caller.job_id))
    return yield* denied(caller, verb, "the call is another lane's, or its job's token is missing")
  const outcome = yield* hostTools
    .execute(caller, { ...request, is_asked: isAskedAbout(state, call_id) }, session.runs)
    .pipe(
      Effect.tapError(({ kind, reason }) =>
        audited(caller, verb, { refused: kind, tool: words(tool_name), reason: words(reason) })
      ),
      Effect.mapError(fromHostToolRefused)
    )
  return { call_id, ...outcome }
})

/** The signals of the session, and a ConfigChanged for each version that the run does not use yet. */
const push = Effect.fn("AgentApi.events")(function* (
  caller: Caller,
  query: { readonly session_id: SessionId },
  lastEventId: string | undefined
) {
  const contexts = yield* Contexts
  const signals = yield* Signals
  const store = yield* ConfigStore
  const session = yield* CurrentOpenSession
  if (session === undefined || query.session_id !== caller.session_id)
    return yield* denied(caller, "events", "another session is named")
  const after = yield* resumeAfter(lastEventId)
  const { view } = yield* runOf(caller, "events")
  const replaced = yield* session.newestStream
  const versions = Stream.map(store.changes, ({ version }) => version)
  const newer = Stream.succeed(view.config_version).pipe(
    Stream.concat(versions),
    Stream.changes,
    Stream.drop(1),
    Stream.map((config_version): Pushed => ({ id: undefined, signal: { type: "ConfigChanged", config_version } }))
  )
  const questions = Stream.map(contexts.asked(caller.session_id), (signal): Pushed => ({ id: undefined, signal }))
  const stored = Stream.orDie(signals.stream(caller.session_id, after))
  return yield* sseResponse(
    Stream.mergeAll([newer, questions, stored], { concurrency: "unbounded" }).pipe(
      Stream.map(({ id, signal }) => ({ id, data: signal })),
      Stream.interruptWhen(Deferred.await(replaced))
    )
  )
})

/** Stores an agent's events. */
const heartbeat = Effect.fn("AgentApi.HEARTBEAT")(function* (caller: Caller, payload: Heartbeat) {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const store = yield* ConfigStore
  if (caller.standing === "superseded") {
    yield* audited(caller, "HEARTBEAT", { refused: "FENCED", reason: "token of an older epoch" })
    const { rev } = yield* Effect.mapError(databaseDefect(events.head(caller.session_id)), fromSessionUnknown)
    const { version } = yield* store.current
    return { ack_rev: rev, action: "FENCED" as const, config_version_latest: version }
  }
  // Its arrival alone proves liveness, so that a slow database never looks like a dead agent (D8).
  yield* lifecycle.heartbeat(caller.session_id, payload.config_version, payload.new_rev)
  const appended = lifecycle.whileAnswering(caller.session_id, events.append(caller, payload))
  const [took, reply] = yield* Effect.timed(Effect.mapError(appended, fromEventTooLarge))
  yield* count("heartbeats", { agent: caller.agent_id, action: reply.action })
  yield* count("heartbeat_ms", { agent: caller.agent_id }, Duration.toMillis(took))
  const { ack_rev, action } = reply
  if (action === "OK" && payload.patches.some((event) => !isKnownEvent(event))) {
    yield* audited(caller, "HEARTBEAT", { refused: "NEWER_EVENTS", reason: "kept, and the session ends" })
    yield* lifecycle.newer(caller.session_id)
  }
  if (action === "OK") yield* auditDenied(caller, payload.patches, ack_rev)
  if (action === "FENCED" || action === "CONFLICT")
    yield* audited(caller, "HEARTBEAT", { refused: action, base_rev: payload.base_rev, ack_rev })
  return reply
})

const requestApproval = Effect.fn("AgentApi.REQUEST_APPROVAL")(function* (caller: Caller, request: ApprovalRequest) {
  const approvals = yield* Approvals
  return yield* approvals.request(caller, request).pipe(
    Effect.tapError(({ kind }) => audited(caller, "REQUEST_APPROVAL", { refused: kind, call_id: request.call_id })),
    Effect.mapError(fromApprovalRefused)
  )
})

/** Passes on the draft and the context of a report. Its other fields are ignored: the acknowledged events say them. */
const reportStatus = Effect.fn("AgentApi.REPORT_STATUS")(function* (
  { agent_id, job_id, session_id, standing }: Caller,
  { described, draft }: ReportStatus
) {
  const contexts = yield* Contexts
  const drafts = yield* Drafts
  if (standing !== "current" || job_id !== undefined) return { ack: true as const }
  if (draft !== undefined) yield* databaseDefect(drafts.put(agent_id, draft))
  if (described !== undefined) yield* contexts.answer(session_id, described.request_id, described.context)
  return { ack: true as const }
})

const terminateSelf = Effect.fn("AgentApi.TERMINATE_SELF")(function* (
  { session_id }: Caller,
  payload: typeof TerminateSelf.Type
) {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const sessions = yield* SessionStore
  const head = yield* Effect.mapError(databaseDefect(events.head(session_id)), fromSessionUnknown)
  if (head.rev !== payload.final_rev || head.hash !== payload.final_hash) return yield* notFlushed(head.rev)
  // Before the run learns of the goodbye, since it then ends the session.
  if (payload.summary !== undefined) yield* databaseDefect(sessions.summarize(session_id, payload.summary))
  yield* lifecycle.terminating(session_id, words(payload.reason))
  return { ack: true as const }
})

/** The caller's share of the configuration, unless it has the newest version. */
const fetchConfig = Effect.fn("AgentApi.FETCH_DYNAMIC_CONFIG")(function* (caller: Caller, known: number) {
  const store = yield* ConfigStore
  const { bindings } = yield* runOf(caller, "FETCH_DYNAMIC_CONFIG")
  const { config, version } = yield* store.current
  return version === known
    ? { config_version: version }
    : { config_version: version, config: yield* shareOf(caller, config, bindings) }
})

const VERB_SERVICES = [
  Approvals,
  Audit,
  ConfigStore,
  Contexts,
  Drafts,
  EventStore,
  HostTools,
  Lifecycle,
  OfflineAddress,
  Runs,
  SessionStore,
  Signals,
  Tokens,
  WorkspaceLabels
] as const

export const layerAgentHandlers = HttpApiBuilder.group(
  AgentApi,
  "rpc",
  Effect.fnUntraced(function* (handlers) {
    const services = Context.pick(...VERB_SERVICES)(
      yield* Effect.context<Context.Service.Identifier<(typeof VERB_SERVICES)[number]>>()
    )
    /** A verb on the caller's own session, with the services that this group was built with. */
    const verb = <A, E, R>(run: (caller: Caller) => Effect.Effect<A, E, R>) =>
      Effect.provideContext(Effect.flatMap(Lease, run), services)
    return handlers.handleAll({
      INIT_HELLO: ({ payload, request: { headers } }) =>
        verb((caller) => initHello(caller, payload, headers["authorization"] ?? "")),
      GET_SECRETS: ({ payload }) => verb((caller) => secrets(caller, payload.resources)),
      HEARTBEAT: ({ payload }) => verb((caller) => heartbeat(caller, payload)),
      REQUEST_APPROVAL: ({ payload }) => verb((caller) => requestApproval(caller, payload)),
      REPORT_STATUS: ({ payload }) => verb((caller) => reportStatus(caller, payload)),
      TERMINATE_SELF: ({ payload }) => verb((caller) => terminateSelf(caller, payload)),
      FETCH_DYNAMIC_CONFIG: ({ payload }) => verb((caller) => fetchConfig(caller, payload.current_config_version)),
      EXECUTE_HOST_TOOL: ({ payload }) => verb((caller) => executeHostTool(caller, payload)),
      events: ({ headers, query }) => verb((caller) => push(caller, query, headers["last-event-id"]))
    })
  })
)
