/** What an operator asks of a session: its events, its jobs, its proof. */
import { Effect, Option, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { JobName, SessionId } from "#schema/Ids.ts"
import { OperatorApi, type SessionSummary } from "#schema/OperatorApi.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/sessions/Signals.ts"
import { badRequest, conflict, fromSessionUnknown, notFound } from "./refusals.ts"

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

/** The one job that is meant: the named one, or the only one. */
const chosen = (running: ReadonlyArray<JobName>, named: JobName | undefined) => {
  if (named !== undefined)
    return running.includes(named)
      ? Effect.succeed(named)
      : Effect.fail(notFound("NO_SUCH_JOB", `no job ${named} runs`, `running: ${running.join(", ") || "none"}`))
  const [only, ...others] = running
  if (only === undefined) return Effect.fail(notFound("NO_SUCH_JOB", "no job runs in this session"))
  return others.length === 0
    ? Effect.succeed(only)
    : Effect.fail(conflict("JOB_AMBIGUOUS", "several jobs run", `name one of: ${running.join(", ")}`))
}

export const layerOperatorSessions = HttpApiBuilder.group(
  OperatorApi,
  "sessions",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    const events = yield* EventStore
    const sessions = yield* SessionStore
    const signals = yield* Signals
    const state = (session_id: SessionId) => Effect.mapError(events.state(session_id), fromSessionUnknown)
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
      cores: ({ params }) =>
        Effect.map(state(params.id), ({ cores }) =>
          [...cores.values()].map(({ job_name, started_at, state, step }) => ({ job_name, state, step, started_at }))
        ),
      cancel: Effect.fn("OperatorApi.cancel")(function* ({ params, payload }) {
        const { cores } = yield* state(params.id)
        const row = yield* sessions.get(params.id)
        const job_name = yield* chosen([...cores.keys()], payload.job_name)
        if (!Option.exists(row, ({ status }) => status === "active"))
          return yield* conflict("NOT_RUNNING", "the session does not run", "its jobs go on when the agent is started")
        const signal_id = yield* signals.cancelCore(params.id, job_name)
        yield* audit.record({
          who: "operator",
          action: "session.cancel",
          session_id: params.id,
          detail: { job_name, signal_id }
        })
        return { job_name, signal_id }
      }),
      verify: ({ params }) => Effect.mapError(events.verify(params.id), fromSessionUnknown)
    })
  })
)
