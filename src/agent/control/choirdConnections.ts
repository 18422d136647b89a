/** The connections that choird lets an agent have (R47), shared out among what it asks at once (R62). */
import { Effect, Semaphore } from "effect"
import { AGENT_CALLS_MAX, HOST_CALLS_MAX, RPC_TIMEOUT_MS, SLOW_HOST_CALLS_MAX } from "#src/shared/limits.ts"
import { type Asked, Unreachable } from "./verbAnswer.ts"

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
          return Effect.fail(new Unreachable({ verb, reason: `${waiting} host tools are waited for already` }))
        waiting += 1
        return Effect.ensuring(
          timely,
          Effect.sync(() => void (waiting -= 1))
        )
      })
    }
  }
})
