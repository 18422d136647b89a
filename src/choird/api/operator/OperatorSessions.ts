/** What an operator asks of a session: its events, its jobs, its proof, and what its agent is to do. */
import { randomUUID } from "node:crypto"
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SessionId } from "#schema/Ids.ts"
import { OperatorApi, type SessionSummary, type SignalSummary } from "#schema/OperatorApi.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { newestReports } from "#src/choird/sessions/newestReports.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { type Order, type Ordered, Steering } from "#src/choird/sessions/Steering.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import {
  badRequest,
  conflict,
  fromSessionUnknown,
  fromSessionUnreadable,
  fromSteeringRefused
} from "#src/choird/api/refusals.ts"

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
    : Effect.fail(badRequest(`${name} is a whole number from 0`))

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

export const layerOperatorSessions = HttpApiBuilder.group(
  OperatorApi,
  "sessions",
  Effect.fnUntraced(function* (handlers) {
    const events = yield* EventStore
    const sessions = yield* SessionStore
    const steering = yield* Steering
    const order = <const O extends Order>(session_id: SessionId, asking: Parameters<typeof asked>[1], order: O) =>
      Effect.mapError(steering.order(asked(session_id, asking), order), (error) =>
        error._tag === "SessionUnknown" ? fromSessionUnknown(error) : fromSteeringRefused(error)
      )
    const state = (session_id: SessionId) => Effect.mapError(events.state(session_id), fromSessionUnreadable)
    return handlers.handleAll({
      list: ({ query }) => Effect.map(sessions.list(query.agent_id), (rows) => rows.map(summary)),
      events: Effect.fn("OperatorApi.events")(function* ({ params, query }) {
        const from = yield* natural("from", query.from)
        const last = yield* natural("last", query.last)
        // Once the stream runs it can no longer say that there is no such session.
        yield* Effect.mapError(events.head(params.id), fromSessionUnknown)
        const options = {
          ...(from === undefined ? {} : { from }),
          ...(last === undefined ? {} : { last }),
          follow: query.follow === "true"
        }
        return Stream.orDie(events.events(params.id, options))
      }),
      cores: Effect.fn("OperatorApi.cores")(function* ({ params }) {
        const now = yield* state(params.id)
        const reports = yield* newestReports(events, params.id, now)
        return [...now.cores.values()].map(({ job_name, started_at, state, step }) => {
          const report = reports.get(job_name)
          return { job_name, state, step, started_at, ...(report === undefined ? {} : { report }) }
        })
      }),
      cancel: Effect.fn("OperatorApi.cancel")(function* ({ params, payload: { job_name, ...asking } }) {
        const named = job_name === undefined ? {} : { job_name }
        const ordered = yield* order(params.id, asking, { type: "CancelCore", ...named })
        return { job_name: ordered.wish.job_name, ...signalled(ordered) }
      }),
      stopTurn: ({ params, payload }) => Effect.map(order(params.id, payload, { type: "StopTurn" }), signalled),
      inject: ({ params, payload: { text, ...asking } }) =>
        Effect.map(order(params.id, asking, { type: "Inject", content: text }), signalled),
      compact: ({ params, payload: { lane, ...asking } }) =>
        Effect.map(
          order(params.id, asking, lane === undefined ? { type: "Compact" } : { type: "Compact", lane }),
          signalled
        ),
      verify: ({ params }) =>
        Effect.mapError(events.verify(params.id), (error) =>
          error._tag === "SessionUnknown" ? fromSessionUnknown(error) : conflict("ARCHIVE_UNREADABLE", error.message)
        )
    })
  })
)
