/** A session that has reached its budget is closed, and the next message begins another one on the same resources (D19). */
import { Deferred, Effect } from "effect"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { RunContext } from "./RunContext.ts"

/** Between two looks for a message that starts the session after one at its budget. */
export const SUCCESSOR_LOOK_MS = 500

/** Waits for a message without a session; `undefined` when the operator stops the agent first. */
export const successor = Effect.fnUntraced(function* ({ agent_id, bindings, prepared, services, stop }: RunContext) {
  const { inbox, leases, sessions } = services
  const pending = Effect.orElseSucceed(inbox.pending(agent_id), () => 0)
  const message = Effect.gen(function* () {
    while ((yield* pending) === 0) yield* Effect.sleep(SUCCESSOR_LOOK_MS)
    return true
  })
  const comes = yield* Effect.raceFirst(message, Effect.as(Deferred.await(stop), false))
  if (!comes) return undefined
  const row = yield* retryDatabase(sessions.create(agent_id, bindings, prepared.image.image_version))
  yield* retryDatabase(leases.transfer(agent_id, row.session_id))
  yield* Effect.logInfo(`a message starts the session ${row.session_id}`)
  return row
})

/** To whoever writes to it, an agent whose session is closed is there: the message brings it up. */
export const awaitingView = ({ agent_id, services }: RunContext) =>
  services.views.change(agent_id, {
    status: "running",
    session_id: null,
    reason: "its session has reached its budget; the next message starts a fresh one"
  })

/** Closes the session and keeps the resources, so that the next message finds the agent as it was (D19). */
export const close = Effect.fnUntraced(function* (context: RunContext, row: SessionRow) {
  const { services } = context
  yield* retryDatabase(services.sessions.end(row.session_id, "closed"))
  yield* Effect.logInfo("the session has reached its budget and is closed")
  yield* services.logs.archive(context.agent_id)
  yield* awaitingView(context)
})
