/** A conversation with an agent of a whole installation, whose parts may die meanwhile; for the chaos tests. */
import { Effect, Schedule, Stream } from "effect"
import type { InboxId, SessionId } from "#schema/Ids.ts"
import { isPrintedEvent, type PrintedEvent } from "#schema/SessionsApi.ts"
import { makeInstallation } from "./installation.ts"
import { startPostgres } from "./postgres.ts"
import { makeProvider, offlineModel } from "./testing/Provider.ts"

/** How long the provider thinks, in ms. */
export const THINKING_MS = 5
/** A job ends after so many steps. */
export const JOB_STEPS_MAX = 90
/** One session for the whole conversation: a budget that is reached would begin another. */
const BUDGETS = {
  total_session_tokens: 1_000_000_000,
  max_tool_calls_per_session: 1_000_000,
  per_job_max_steps: JOB_STEPS_MAX
}

/** Where choird keeps its tables, and the server when it is one. */
export const makeStore = Effect.fnUntraced(function* (database: "embedded" | "server") {
  if (database === "embedded") return { server: undefined, options: {} }
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startPostgres({ vector: true })),
    ({ stop }) => Effect.promise(stop)
  )
  const url = `postgres://${server.user}@${encodeURIComponent(server.host)}:${server.port}/postgres`
  return { server, options: { postgres: { url_secret: "postgres-url" }, secrets: { "postgres-url": url } } }
})

/** A conversation with an agent of a whole installation, whose parts may die meanwhile. */
export const startConversation = Effect.fnUntraced(function* (database: "embedded" | "server") {
  const provider = yield* makeProvider
  let answered = 0
  let thinking_ms = THINKING_MS
  yield* provider.otherwise((request) =>
    Effect.tap(offlineModel(request, thinking_ms), () => Effect.sync(() => void (answered += 1)))
  )
  const store = yield* makeStore(database)
  const config = { budgets: BUDGETS }
  const choir = yield* makeInstallation({ ...store.options, config, endpoint: provider.endpoint })
  const { api, params } = choir
  let choird = yield* choir.start
  yield* choir.build
  yield* api.agents.start({ params, payload: {} })
  const { session_id } = yield* api.agents.status({ params })
  const session = session_id as SessionId
  const sent: Array<InboxId> = []
  /** All that was ever read: choird has it, so it may never change. */
  const seen: Array<PrintedEvent> = []

  const often = Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(1200)])
  // The breaker stops what crashes too often; a person starts it again, and that is never counted (R9).
  const running = Effect.gen(function* () {
    const { status } = yield* api.agents.status({ params })
    if (status === "crashed" || status === "stopped") yield* Effect.ignore(api.agents.start({ params, payload: {} }))
    if (status !== "running") return yield* Effect.fail("not yet")
  })
  const read = Effect.fnUntraced(function* (from: number) {
    const query = { from }
    const page = Stream.unwrap(api.sessions.events({ params: { id: session }, query })).pipe(
      Stream.filter(isPrintedEvent)
    )
    return yield* Stream.runCollect(page)
  })
  const look = Effect.tap(
    Effect.suspend(() => read(seen.length + 1)),
    (more) => Effect.sync(() => void seen.push(...more))
  )
  const outputs = () => seen.filter(({ event }) => event.event_type === "ModelOutput").length
  return {
    choir,
    server: store.server,
    session,
    sent,
    seen,
    running,
    often,
    look,
    answered: () => answered,
    /** How long the provider thinks from now on. */
    think: (ms: number) => Effect.sync(() => void (thinking_ms = ms)),
    choird: () => choird,
    restartChoird: Effect.gen(function* () {
      yield* choird.signal("SIGKILL")
      yield* choird.exited
      choird = yield* choir.start
    }),
    whole: read(1),
    /** A client that gets no answer asks again with the same id, as a person's program does. */
    say: (id: string, words: string) =>
      Effect.andThen(running, choir.send(`chaos-${id}`, words)).pipe(
        Effect.retry(often),
        Effect.tap(({ inbox_id }) => Effect.sync(() => sent.push(inbox_id)))
      ),
    /** Until choird has as many model outputs as the agent was given until now; ends after a minute at the latest. */
    caughtUp: Effect.suspend(() => {
      const wanted = answered
      return Effect.andThen(
        look,
        Effect.suspend(() => (outputs() >= wanted ? Effect.void : Effect.fail("not yet")))
      ).pipe(Effect.retry(often), Effect.ignore)
    })
  }
})
export type Conversation = Effect.Success<ReturnType<typeof startConversation>>
