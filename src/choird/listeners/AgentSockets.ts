/** A socket for each running session (D10), all with one application, which knows the session by the socket. */
import { rmdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Clock, Context, Effect, Layer, Scope } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type AgentEndpoint, CA_FILE, NAME_FILES } from "#src/choird/runtime/ContainerRuntime.ts"
import { monotonicMsOf } from "#src/shared/monotonicMs.ts"
import { RECEIVED_MARK } from "#src/shared/files/receivedMark.ts"
import { listen } from "#src/shared/wire/http.ts"
import { SocketRefused } from "#src/shared/wire/sockets.ts"
import { AgentApp } from "./AgentApp.ts"
import { AgentTcp } from "./AgentTcp.ts"
import { askedByAgent, auditedRequests } from "./auditedRequests.ts"
import { AGENT_CONNECTIONS_MAX } from "./OpenSession.ts"

/** How long a session's socket takes no connection after one that came too fast. */
export const REFUSED_REST_MS = 500

/** `dir` holds the socket and what an agent needs to reach choird, nothing else; it is what a container is given. */
export interface AgentSocket {
  readonly dir: string
  readonly path: string
  /** The endpoint that the agent uses instead of the socket. */
  readonly endpoint?: AgentEndpoint
}

/** Writes the one certificate that the agent may trust beside its socket. The folder may be the agent's own: no link there is followed. */
const pin = (dir: string, certificate: string) => {
  const path = join(dir, CA_FILE)
  return Effect.acquireRelease(
    Effect.try({
      try: () => {
        rmSync(path, { force: true })
        writeFileSync(path, certificate, { mode: 0o644, flag: "wx" })
      },
      catch: (cause) => new SocketRefused({ path, reason: "failed", detail: String(cause) })
    }),
    () => Effect.ignore(Effect.try(() => rmSync(path, { force: true })))
  )
}

/** Opens the sockets of sessions. */
export class AgentSockets extends Context.Service<
  AgentSockets,
  {
    /**
     * Opens a session on `socks/agents/<session>/choird.sock`, and on the TCP listener where there is one, until the scope closes,
     * which removes socket and folder.
     */
    open(session_id: SessionId): Effect.Effect<AgentSocket, SocketRefused, Scope.Scope>
  }
>()("choir/choird/AgentSockets") {
  static readonly layer = Layer.effect(
    AgentSockets,
    Effect.gen(function* () {
      const { home } = yield* ConfigStore
      const app = yield* AgentApp
      const audited = yield* auditedRequests
      const tcp = yield* AgentTcp
      return AgentSockets.of({
        open: Effect.fn("AgentSockets.open")(function* (session_id) {
          const path = join(home, "socks", "agents", session_id, "choird.sock")
          const dir = dirname(path)
          yield* Effect.addFinalizer(() => Effect.ignore(Effect.try(() => rmdirSync(dir))))
          // The names are removed by the runtime, unless its choird was killed.
          for (const name of [RECEIVED_MARK, ...Object.values(NAME_FILES)])
            yield* Effect.addFinalizer(() => Effect.ignore(Effect.try(() => rmSync(join(dir, name), { force: true }))))
          const session = yield* app.open(session_id)
          const clock = yield* Clock.Clock
          yield* listen(audited(app.of(session), askedByAgent(session_id)), {
            path,
            connectionsMax: AGENT_CONNECTIONS_MAX,
            backlog: AGENT_CONNECTIONS_MAX,
            accept: (connection) => session.claim(connection, monotonicMsOf(clock)),
            restMs: REFUSED_REST_MS
          })
          if (tcp.agents?.certificate !== undefined) yield* pin(dir, tcp.agents.certificate)
          // First of all: the listeners wait for their requests, and they wait for what runs.
          yield* Effect.addFinalizer((exit) => Scope.close(session.runs, exit))
          if (tcp.agents === undefined) return { dir, path }
          return { dir, path, endpoint: { url: tcp.agents.url, pinned: tcp.agents.certificate !== undefined } }
        })
      })
    })
  )
}

/** The listeners for agents, which accept requests before the API is mounted. */
export const layerAgentListeners = AgentSockets.layer.pipe(
  Layer.provideMerge(AgentTcp.layer),
  Layer.provideMerge(AgentApp.layer)
)
