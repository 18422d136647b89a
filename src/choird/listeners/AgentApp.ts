/** The one application of the agents' API and its open sessions, shared by the sockets and the TCP listener. */
import { Context, Deferred, Effect, Layer, Scope } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import type { SessionId } from "#schema/Ids.ts"
import { BODY_BYTES_MAX, type HttpApp, refusalResponse } from "#src/shared/wire/http.ts"
import { CurrentOpenSession, makeOpenSession, type OpenSession } from "./OpenSession.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { makeInQueue, WAIT_MS_MAX, WAITING_MAX } from "./RequestQueue.ts"

/** A refusal over a rate, with the time to wait. */
export const rateLimited = (wait_ms: number, message = "too many requests: wait before the next one") =>
  refusalResponse({ status: 429, type: "RATE_LIMITED", message, retry_after_ms: wait_ms })

/** The bytes of a request's body by its head; the maximum where the head does not say. */
const bodyBytes = (headers: Headers.Headers): number => {
  const declared = headers["content-length"]
  if (declared === undefined) return headers["transfer-encoding"] === undefined ? 0 : BODY_BYTES_MAX
  return Math.min(Number(declared), BODY_BYTES_MAX)
}

export class AgentApp extends Context.Service<
  AgentApp,
  {
    /** Opens a session to requests until the scope closes, which cuts its connections. The caller ends its `runs` before. */
    open(session_id: SessionId): Effect.Effect<OpenSession, never, Scope.Scope>
    /** An open session. */
    find(session_id: SessionId): OpenSession | undefined
    /** The API for requests of a session, which are refused over its rate before they are read (R47), and wait in the queue. */
    of(session: OpenSession): HttpApp
    /** The API without a limit of its own, for requests that the listener has counted. */
    readonly app: HttpApp
    /** Gives the API its routes, once; requests that come before wait for it. */
    mount(routes: HttpApp): Effect.Effect<void>
  }
>()("choir/choird/AgentApp") {
  static readonly layer = Layer.effect(
    AgentApp,
    Effect.gen(function* () {
      const mounted = yield* Deferred.make<HttpApp>()
      const app: HttpApp = Effect.flatten(Deferred.await(mounted))
      const sessions = new Map<SessionId, OpenSession>()
      const inQueue = yield* makeInQueue

      const close = (session: OpenSession) =>
        Effect.gen(function* () {
          const { session_id } = session
          if (sessions.get(session_id) === session) sessions.delete(session_id)
          yield* session.disconnect
        })

      return AgentApp.of({
        app,
        find: (session_id) => sessions.get(session_id),
        mount: (routes) => Effect.asVoid(Deferred.succeed(mounted, routes)),
        of: (session) =>
          Effect.gen(function* () {
            const { headers } = yield* HttpServerRequest.HttpServerRequest
            const bytes = bodyBytes(headers)
            const wait_ms = session.admit(yield* monotonicMs, bytes)
            if (wait_ms > 0) return rateLimited(wait_ms)
            if (session.use.waiting >= WAITING_MAX) return rateLimited(WAIT_MS_MAX)
            return yield* inQueue(session.use, bytes)(Effect.provideService(app, CurrentOpenSession, session))
          }),
        open: Effect.fn("AgentApp.open")(function* (session_id) {
          const runs = yield* Scope.make()
          const now_ms = yield* monotonicMs
          return yield* Effect.acquireRelease(
            Effect.sync(() => {
              const session = makeOpenSession(session_id, now_ms, runs)
              sessions.set(session_id, session)
              return session
            }),
            close
          )
        })
      })
    })
  )
}
