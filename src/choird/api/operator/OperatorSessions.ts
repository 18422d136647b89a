/** The operator's endpoints about sessions: events, jobs, verification, and orders to the agent. */
import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Option, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type AgentId, EDGE, type LaneId, type SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { type SessionSummary, type SignalSummary } from "#schema/SessionsApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { jobSummaries } from "#src/choird/sessions/jobSummaries.ts"
import { SessionUnknown } from "#src/choird/sessions/readLog.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { Order } from "#src/choird/sessions/Order.ts"
import { type Ordered, Steering } from "#src/choird/sessions/Steering.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import {
  badRequest,
  conflict,
  fromAgentRefused,
  fromSessionUnknown,
  fromSessionUnreadable,
  fromSteeringRefused,
  notFound
} from "#src/choird/api/refusals.ts"
import { deletedText, SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"

/** The reason why a session cannot be resumed; the start itself reports everything else that hinders it. */
const refusal = ({ agent_id, session_id, status }: SessionRow, latest: SessionRow) => {
  if (latest.session_id !== session_id)
    return conflict(
      "NOT_LATEST",
      `${agent_id} has run in ${latest.session_id} since, and only an agent's newest session can be resumed`,
      `choirctl session resume ${latest.session_id}`
    )
  return status === "closed"
    ? conflict(
        "CLOSED",
        `the session ${session_id} has ended for good and cannot be resumed`,
        `choirctl agent start ${agent_id}`
      )
    : undefined
}

export const layerOperatorResume = HttpApiBuilder.group(
  OperatorApi,
  "resume",
  Effect.fnUntraced(function* (handlers) {
    const lifecycle = yield* Lifecycle
    const sessions = yield* SessionStore
    return handlers.handleAll({
      resume: Effect.fn("OperatorApi.resumeSession")(function* ({ params: { id: session_id } }) {
        const found = yield* databaseDefect(sessions.get(session_id))
        if (Option.isNone(found)) return yield* fromSessionUnknown(new SessionUnknown({ session_id }))
        const row = found.value
        const latest = Option.getOrElse(yield* databaseDefect(sessions.latest(row.agent_id)), () => row)
        const refused = refusal(row, latest)
        if (refused !== undefined) return yield* refused
        const { agent_id, epoch } = yield* Effect.mapError(
          lifecycle.startAsBefore(row.agent_id, row.resource_bindings),
          fromAgentRefused
        )
        return { session_id, agent_id, epoch }
      })
    })
  })
)

/** One session as its operator sees it: its position, its bindings, and its agent's summary. */
export const layerOperatorSessionDetail = HttpApiBuilder.group(
  OperatorApi,
  "session",
  Effect.fnUntraced(function* (handlers) {
    const archives = yield* SessionArchives
    const events = yield* EventStore
    const sessions = yield* SessionStore
    return handlers.handleAll({
      show: Effect.fn("OperatorApi.showSession")(function* ({ params: { id: session_id } }) {
        const row = yield* databaseDefect(sessions.get(session_id))
        if (Option.isNone(row)) {
          const gone = Option.getOrUndefined(yield* databaseDefect(archives.deleted(session_id)))
          if (gone !== undefined) return yield* notFound("SESSION_DELETED", deletedText(gone), "choirctl session list")
          return yield* fromSessionUnknown(new SessionUnknown({ session_id }))
        }
        const { container: _, ...shown } = row.value
        const { hash: head, rev: last_rev } = yield* Effect.mapError(
          databaseDefect(events.head(session_id)),
          fromSessionUnknown
        )
        const newer = Option.map(
          yield* databaseDefect(sessions.newer(session_id)),
          ({ choird_version, event_type, rev, v }) => ({
            newer: { rev, v, event_type, choird_version }
          })
        )
        return {
          ...shown,
          ...Option.getOrUndefined(newer),
          last_rev,
          head,
          summary: Option.getOrNull(yield* databaseDefect(sessions.summary(session_id)))
        }
      })
    })
  })
)

const summary = ({ agent_id, ended_at, last_rev, session_id, started_at, status }: SessionRow): SessionSummary => ({
  session_id,
  agent_id,
  status,
  started_at,
  ended_at,
  last_rev
})

/** A revision or a count of the query; the integers of the database end at 2^31 - 1. */
const natural = (name: string, value: number | undefined) =>
  value === undefined || (Number.isInteger(value) && value >= 0 && value < 2 ** 31)
    ? Effect.succeed(value)
    : Effect.fail(badRequest(`${name} must be a whole number from 0`))

/** The order's request as the operator makes it. */
const asked = (session_id: SessionId, { request_id, wait_ms = 0 }: { request_id?: string; wait_ms?: number }) => ({
  session_id,
  request_id: `operator:${request_id ?? randomUUID()}`,
  who: "operator",
  wait_ms: Math.min(wait_ms, SIGNAL_WAIT_MS_MAX)
})

const signalled = ({ ended, signal_id }: Pick<Ordered, "ended" | "signal_id">): SignalSummary => ({
  signal_id,
  rev: ended?.rev ?? null,
  refused: ended?.refused ?? null
})

/** The session in which an agent runs after another one, once it runs. */
const successorOf = Effect.fnUntraced(function* (agent_id: AgentId, before: SessionId) {
  const lifecycle = yield* Lifecycle
  const found = yield* lifecycle.follow(agent_id).pipe(
    Stream.filter(({ session_id, status }) => session_id !== null && session_id !== before && status === "running"),
    Stream.runHead,
    Effect.timeoutOption(SIGNAL_WAIT_MS_MAX)
  )
  return Option.getOrNull(Option.flatten(found))?.session_id ?? null
})

const stateOf = (session_id: SessionId) =>
  Effect.flatMap(EventStore, (events) =>
    Effect.mapError(databaseDefect(events.state(session_id)), fromSessionUnreadable)
  )

/** A stream of a session's events, with those that come later where it follows. */
const eventsOf = Effect.fn("OperatorApi.events")(function* (
  session_id: SessionId,
  query: { readonly from?: number; readonly last?: number; readonly follow?: "true" | "false" }
) {
  const events = yield* EventStore
  const from = yield* natural("from", query.from)
  const last = yield* natural("last", query.last)
  // Once the stream runs, it can no longer answer that there is no such session.
  yield* Effect.mapError(databaseDefect(events.head(session_id)), fromSessionUnknown)
  const options = {
    ...(from === undefined ? {} : { from }),
    ...(last === undefined ? {} : { last }),
    follow: query.follow === "true"
  }
  return Stream.orDie(events.events(session_id, options))
})

/** The jobs of a session, with the words that their events hold. */
const jobsOf = Effect.fn("OperatorApi.cores")(function* (session_id: SessionId) {
  const events = yield* EventStore
  const state = yield* stateOf(session_id)
  const words = yield* databaseDefect(events.jobWords(session_id, state))
  return jobSummaries(state, words, yield* Clock.currentTimeMillis)
})

/** The prompt of a lane's next call, which only the running agent knows. */
const contextOf = Effect.fn("OperatorApi.context")(function* (session_id: SessionId, lane: LaneId) {
  const contexts = yield* Contexts
  const lifecycle = yield* Lifecycle
  yield* stateOf(session_id)
  const runs = (yield* lifecycle.list).some((row) => row.session_id === session_id && row.status === "running")
  if (!runs) return yield* conflict("NOT_RUNNING", "the session is not running; resume it: choirctl session resume")
  return yield* Effect.mapError(contexts.ask(session_id, lane), ({ kind, message }) => conflict(kind, message))
})

export const layerOperatorSessions = HttpApiBuilder.group(
  OperatorApi,
  "sessions",
  Effect.fnUntraced(function* (handlers) {
    const events = yield* EventStore
    const sessions = yield* SessionStore
    const steering = yield* Steering
    const provide = Effect.provideContext(
      Context.pick(Contexts, EventStore, Lifecycle)(yield* Effect.context<Contexts | EventStore | Lifecycle>())
    )
    const order = <const O extends Order>(session_id: SessionId, asking: Parameters<typeof asked>[1], order: O) =>
      Effect.mapError(databaseDefect(steering.order(asked(session_id, asking), order)), (error) =>
        error._tag === "SessionUnknown" ? fromSessionUnknown(error) : fromSteeringRefused(error)
      )
    return handlers.handleAll({
      list: ({ query }) => Effect.map(databaseDefect(sessions.list(query.agent_id)), (rows) => rows.map(summary)),
      events: ({ params, query }) => provide(eventsOf(params.id, query)),
      cores: ({ params }) => provide(jobsOf(params.id)),
      context: ({ params, query: { lane = EDGE } }) => provide(contextOf(params.id, lane)),
      cancel: Effect.fn("OperatorApi.cancel")(function* ({ params, payload: { job_name, ...asking } }) {
        const named = job_name === undefined ? {} : { job_name }
        const ordered = yield* order(params.id, asking, { type: "CancelCore", ...named })
        return { job_name: ordered.body.job_name, ...signalled(ordered) }
      }),
      startSkill: Effect.fn("OperatorApi.startSkill")(function* ({ params, payload: { input, skill, ...asking } }) {
        const given = input === undefined ? {} : { input }
        const ordered = yield* order(params.id, asking, { type: "StartSkill", skill, ...given })
        return { job_name: ordered.body.job_name, ...signalled(ordered) }
      }),
      cancelSkill: ({ params, payload: { skill, ...asking } }) =>
        Effect.map(order(params.id, asking, { type: "CancelSkill", skill }), signalled),
      stopTurn: ({ params, payload }) => Effect.map(order(params.id, payload, { type: "StopTurn" }), signalled),
      renew: Effect.fn("OperatorApi.newSession")(function* ({ params, payload: { end_jobs, ...asking } }) {
        const ordered = yield* order(params.id, asking, {
          type: "NewSession",
          ...(end_jobs === true ? { end_jobs } : {})
        })
        const row = Option.getOrUndefined(yield* databaseDefect(sessions.get(params.id)))
        const isOver = ordered.ended !== null && ordered.ended.refused === null
        const next = isOver && row !== undefined ? yield* provide(successorOf(row.agent_id, params.id)) : null
        return { ...signalled(ordered), closed: params.id, session_id: next }
      }),
      inject: ({ params, payload: { text, ...asking } }) =>
        Effect.map(order(params.id, asking, { type: "Inject", content: text }), signalled),
      answer: ({ params, payload: { job_name, text, ...asking } }) =>
        Effect.map(
          order(params.id, asking, {
            type: "Answer",
            content: text,
            ...(job_name === undefined ? {} : { job_name })
          }),
          signalled
        ),
      compact: ({ params, payload: { lane, ...asking } }) =>
        Effect.map(
          order(params.id, asking, lane === undefined ? { type: "Compact" } : { type: "Compact", lane }),
          signalled
        ),
      verify: ({ params }) =>
        Effect.mapError(databaseDefect(events.verify(params.id)), (error) =>
          error._tag === "SessionUnknown" ? fromSessionUnknown(error) : conflict("ARCHIVE_UNREADABLE", error.message)
        )
    })
  })
)
