/** The eight verbs and the push stream, each on the caller's own session and no other. */
import { Deferred, Duration, Effect, Option, Redacted, Schema, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentApi, type Caller, Lease } from "#schema/AgentApi.ts"
import { isKnownEvent } from "#schema/Event.ts"
import { type CallId, type SessionId, SignalId } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { HostRequest } from "#src/choird/hosttools/HostTools.ts"
import type { Pushed } from "#src/choird/queues/Signals.ts"
import { count } from "#src/choird/logs/metrics.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { auditDenied, audited, denied, runOf, services, type Services, shareOf, words } from "./agentCaller.ts"
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

const BIGINT_MAX = 2n ** 63n - 1n

/** The id to resume after, which the database must be able to hold. */
const resumeAfter = (header: string | undefined) => {
  if (header === undefined) return Effect.undefined
  return Option.match(Schema.decodeOption(SignalId)(header), {
    onSome: (id) =>
      BigInt(id) <= BIGINT_MAX ? Effect.succeed(id) : Effect.fail(badRequest("last-event-id is too large")),
    onNone: () => Effect.fail(badRequest("last-event-id must be the id of a signal"))
  })
}

/** Names of unbound secrets that an audit row keeps. */
const UNBOUND_AUDITED_MAX = 20

/** The values of bound secrets; of the others only the names. */
const secrets = Effect.fn("AgentApi.GET_SECRETS")(function* (
  services: Services,
  caller: Caller,
  resources: ReadonlyArray<Parameters<Services["config"]["secret"]>[0]>
) {
  const { bindings } = yield* runOf(services, caller, "GET_SECRETS")
  const bound = yield* services.config.secretsOf(bindings)
  const wanted = [...new Set(resources)]
  const unbound = wanted.filter((name) => !bound.has(name))
  if (unbound.length > 0)
    yield* audited(services, caller, "GET_SECRETS", {
      refused: "UNBOUND",
      names: unbound.slice(0, UNBOUND_AUDITED_MAX)
    })
  const asked = wanted.filter((name) => bound.has(name))
  const values = yield* services.config.secretValues(asked)
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
const executeHostTool = Effect.fn("AgentApi.EXECUTE_HOST_TOOL")(function* (
  services: Services,
  caller: Caller,
  request: HostRequest
) {
  const verb = "EXECUTE_HOST_TOOL"
  const session = yield* CurrentOpenSession
  if (session === undefined) return yield* denied(services, caller, verb, "it did not come through a session's socket")
  const { call_id, tool_name } = request
  const state = yield* Effect.mapError(databaseDefect(services.events.state(caller.session_id)), fromSessionUnreadable)
  if (isOfAnother(state, call_id, caller.job_id))
    return yield* denied(services, caller, verb, "the call is another lane's, or its job's token is missing")
  const outcome = yield* services.hostTools
    .execute(caller, { ...request, is_asked: isAskedAbout(state, call_id) }, session.runs)
    .pipe(
      Effect.tapError(({ kind, reason }) =>
        audited(services, caller, verb, { refused: kind, tool: words(tool_name), reason: words(reason) })
      ),
      Effect.mapError(fromHostToolRefused)
    )
  return { call_id, ...outcome }
})

/** The signals of the session, and a ConfigChanged for each version that the run does not use yet. */
const push = Effect.fn("AgentApi.events")(function* (
  services: Services,
  caller: Caller,
  query: { readonly session_id: SessionId },
  lastEventId: string | undefined
) {
  const { config, contexts, signals } = services
  const session = yield* CurrentOpenSession
  if (session === undefined || query.session_id !== caller.session_id)
    return yield* denied(services, caller, "events", "another session is named")
  const after = yield* resumeAfter(lastEventId)
  const { view } = yield* runOf(services, caller, "events")
  const replaced = yield* session.newestStream
  const versions = Stream.map(config.changes, ({ version }) => version)
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

export const layerAgentHandlers = HttpApiBuilder.group(
  AgentApi,
  "rpc",
  Effect.fnUntraced(function* (handlers) {
    const all = yield* services
    const { approvals, config, events, lifecycle } = all
    return handlers.handleAll({
      INIT_HELLO: ({ payload, request }) =>
        Effect.flatMap(Lease, (caller) => initHello(all, caller, payload, request.headers["authorization"] ?? "")),
      GET_SECRETS: ({ payload }) => Effect.flatMap(Lease, (caller) => secrets(all, caller, payload.resources)),
      HEARTBEAT: Effect.fn("AgentApi.HEARTBEAT")(function* ({ payload }) {
        const caller = yield* Lease
        if (caller.standing === "superseded") {
          yield* audited(all, caller, "HEARTBEAT", { refused: "FENCED", reason: "token of an older epoch" })
          const { rev } = yield* Effect.mapError(databaseDefect(events.head(caller.session_id)), fromSessionUnknown)
          const { version } = yield* config.current
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
          yield* audited(all, caller, "HEARTBEAT", { refused: "NEWER_EVENTS", reason: "kept, and the session ends" })
          yield* lifecycle.newer(caller.session_id)
        }
        if (action === "OK") yield* auditDenied(all, caller, payload.patches, ack_rev)
        if (action === "FENCED" || action === "CONFLICT")
          yield* audited(all, caller, "HEARTBEAT", { refused: action, base_rev: payload.base_rev, ack_rev })
        return reply
      }),
      REQUEST_APPROVAL: Effect.fn("AgentApi.REQUEST_APPROVAL")(function* ({ payload }) {
        const caller = yield* Lease
        return yield* approvals.request(caller, payload).pipe(
          Effect.tapError(({ kind }) =>
            audited(all, caller, "REQUEST_APPROVAL", { refused: kind, call_id: payload.call_id })
          ),
          Effect.mapError(fromApprovalRefused)
        )
      }),
      // What a lane does is read from its acknowledged events; the rest is passed on and forgotten.
      REPORT_STATUS: Effect.fn("AgentApi.REPORT_STATUS")(function* ({ payload: { described, draft } }) {
        const { agent_id, job_id, session_id, standing } = yield* Lease
        if (standing !== "current" || job_id !== undefined) return { ack: true as const }
        if (draft !== undefined) yield* databaseDefect(all.drafts.put(agent_id, draft))
        if (described !== undefined) yield* all.contexts.answer(session_id, described.request_id, described.context)
        return { ack: true as const }
      }),
      TERMINATE_SELF: Effect.fn("AgentApi.TERMINATE_SELF")(function* ({ payload }) {
        const { session_id } = yield* Lease
        const head = yield* Effect.mapError(databaseDefect(events.head(session_id)), fromSessionUnknown)
        if (head.rev !== payload.final_rev || head.hash !== payload.final_hash) return yield* notFlushed(head.rev)
        // Before the run learns of the goodbye, since it then ends the session.
        if (payload.summary !== undefined) yield* databaseDefect(all.sessions.summarize(session_id, payload.summary))
        yield* lifecycle.terminating(session_id, words(payload.reason))
        return { ack: true as const }
      }),
      FETCH_DYNAMIC_CONFIG: Effect.fn("AgentApi.FETCH_DYNAMIC_CONFIG")(function* ({ payload }) {
        const caller = yield* Lease
        const { bindings } = yield* runOf(all, caller, "FETCH_DYNAMIC_CONFIG")
        const { config: running, version } = yield* config.current
        if (payload.current_config_version === version) return { config_version: version }
        return { config_version: version, config: yield* shareOf(all, caller, running, bindings) }
      }),
      EXECUTE_HOST_TOOL: ({ payload }) => Effect.flatMap(Lease, (caller) => executeHostTool(all, caller, payload)),
      events: ({ headers, query }) =>
        Effect.flatMap(Lease, (caller) => push(all, caller, query, headers["last-event-id"]))
    })
  })
)
