/** The agent's connections to choird: how many it may have (R47), how concurrent requests share them (R62), and the link to the socket. */
import { basename, dirname } from "node:path"
import { Effect, FileSystem, Semaphore } from "effect"
import { CLIENT_CONNECTIONS_MAX } from "#src/shared/wire/sockets.ts"
import { type Asked, RPC_TIMEOUT_MS, Unreachable } from "./verbAnswer.ts"

/** Requests of an agent at once beside its push stream and its heartbeat, for each of which a connection stays free (R62). */
export const AGENT_CALLS_MAX = CLIENT_CONNECTIONS_MAX - 2
/** Of these, host tools that may take longer than RPC_TIMEOUT_MS, so that a quick one never waits for slow ones (R62). */
export const SLOW_HOST_CALLS_MAX = AGENT_CALLS_MAX - 1
/** Tools of one agent that run at once (D1); further ones wait under their locks. */
export const TOOLS_IN_FLIGHT_MAX = 8
/** Host tools that one agent waits for at once, a connection or an answer; its tools in flight (D1) are fewer. */
export const HOST_CALLS_MAX = 2 * TOOLS_IN_FLIGHT_MAX

/**
 * Keeps connections free for heartbeats and the push stream, and one for quick calls: a permit of `all` is a connection, and a slow
 * call needs one of `slow` too.
 */
export const makeConnections = Effect.gen(function* () {
  const all = yield* Semaphore.make(AGENT_CALLS_MAX)
  const slow = yield* Semaphore.make(SLOW_HOST_CALLS_MAX)
  let waiting = 0
  return {
    one: all.withPermit,
    /** Refuses more than HOST_CALLS_MAX at once. */
    host: <A>(timeout_ms: number, call: Asked<A>): Asked<A> => {
      const verb = "EXECUTE_HOST_TOOL"
      const connected = timeout_ms > RPC_TIMEOUT_MS ? slow.withPermit(all.withPermit(call)) : all.withPermit(call)
      const timely = Effect.timeoutOrElse(connected, {
        duration: timeout_ms,
        orElse: () => Effect.fail(new Unreachable({ verb, reason: `there was no answer within ${timeout_ms} ms` }))
      })
      return Effect.suspend(() => {
        if (waiting >= HOST_CALLS_MAX)
          return Effect.fail(new Unreachable({ verb, reason: `already waiting for ${waiting} host tool calls` }))
        waiting += 1
        return Effect.ensuring(
          timely,
          Effect.sync(() => void (waiting -= 1))
        )
      })
    }
  }
})

/** Where containers have the socket. On a host it stands elsewhere, and nothing is made there. */
export const CONTAINER_SOCKET = "/run/choir/choird.sock"

/**
 * Links `/run/choir.sock`, the socket's short name in a container (D10), beside the mounted folder of the socket. Other programs of the
 * container may use it; the agent does not need it.
 */
export const linkSocket = Effect.fnUntraced(function* (socket: string) {
  const fs = yield* FileSystem.FileSystem
  const folder = dirname(socket)
  yield* fs.symlink(`${basename(folder)}/${basename(socket)}`, `${folder}.sock`).pipe(
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void),
    Effect.catch(({ message }) => Effect.logWarning(`the link ${folder}.sock could not be made: ${message}`))
  )
})
