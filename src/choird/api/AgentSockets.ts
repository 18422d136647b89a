/** A socket for each running session (D10): one application for all of them, built once, told apart by the socket. */
import { rmdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Clock, Context, Deferred, Effect, Layer, Scope } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type HttpApp, listen, refusalResponse } from "#src/shared/http.ts"
import { AGENT_CONNECTIONS_MAX } from "#src/shared/limits.ts"
import type { SocketRefused } from "#src/shared/sockets.ts"
import { LaneReports } from "./LaneReports.ts"
import { CurrentSocketSession, makeSocketSession, type SocketSession } from "./SocketSession.ts"

/** `dir` holds nothing but the socket, and is what a container is given. */
export interface AgentSocket {
  readonly dir: string
  readonly path: string
}

/** Refuses a request over the session's rate before anything of it is looked at (R47). */
const limited = (app: HttpApp, session: SocketSession): HttpApp =>
  Effect.flatMap(Clock.currentTimeMillis, (now_ms) => {
    const wait_ms = session.admit(now_ms)
    return wait_ms === 0
      ? Effect.provideService(app, CurrentSocketSession, session)
      : Effect.succeed(
          refusalResponse({
            status: 429,
            type: "RATE_LIMITED",
            message: "too many requests: wait before the next one",
            retry_after_ms: wait_ms
          })
        )
  })

/** Opens the sockets of sessions. What answers on them is mounted once, since its handlers need what opens the sockets. */
export class AgentSockets extends Context.Service<
  AgentSockets,
  {
    /** Listens on `socks/agents/<session>/choird.sock` until the scope closes, which removes socket and folder. */
    open(session_id: SessionId): Effect.Effect<AgentSocket, SocketRefused, Scope.Scope>
    /** Gives the sockets their application; requests that come before wait for it. */
    mount(app: HttpApp): Effect.Effect<void>
  }
>()("choir/choird/AgentSockets") {
  static readonly layer = Layer.effect(
    AgentSockets,
    Effect.gen(function* () {
      const { home } = yield* ConfigStore
      const reports = yield* LaneReports
      const mounted = yield* Deferred.make<HttpApp>()
      const app: HttpApp = Effect.flatten(Deferred.await(mounted))
      return AgentSockets.of({
        open: Effect.fn("AgentSockets.open")(function* (session_id) {
          const path = join(home, "socks", "agents", session_id, "choird.sock")
          const dir = dirname(path)
          const runs = yield* Scope.make()
          const session = makeSocketSession(session_id, yield* Clock.currentTimeMillis, runs)
          yield* Effect.addFinalizer(() =>
            Effect.andThen(reports.forget(session_id), Effect.ignore(Effect.try(() => rmdirSync(dir))))
          )
          yield* listen(limited(app, session), { path, connectionsMax: AGENT_CONNECTIONS_MAX })
          // First of all: the listener waits for its requests, and they wait for what runs.
          yield* Effect.addFinalizer((exit) => Scope.close(runs, exit))
          return { dir, path }
        }),
        mount: (routes) => Effect.asVoid(Deferred.succeed(mounted, routes))
      })
    })
  )
}
