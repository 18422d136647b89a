/** The messages of a run to its agent's person. */
import { Clock, Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { boundDms, type RunBindings } from "#schema/ResourceBindings.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { type Advice, Outbox } from "#src/choird/queues/Outbox.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** An agent that runs, and its DMs. */
export interface Notified {
  readonly agent_id: AgentId
  readonly bindings: Pick<RunBindings, "dm" | "dms">
}

/** How an agent that has stopped is started again: an admin does it from where the notice is read. */
const startAgain =
  (agent_id: AgentId): Advice =>
  (config, dm) => {
    const at = config.dms[dm]
    if (at !== undefined && traitsOf(config, at.gateway).is_local)
      return `To start me again: choirctl agent start ${agent_id}`
    return at?.admin === true ? `Send /start ${agent_id} to start me again.` : "An admin has to start me again."
  }

/** Tells the agent's person that it has stopped, and how it is started again. */
export const tellStopped = (notified: Notified, text: string) => tell(notified, text, startAgain(notified.agent_id))

/** Tells the agent's person, in words for somebody who has no shell. */
export const tell = Effect.fnUntraced(function* ({ agent_id, bindings }: Notified, text: string, advice?: Advice) {
  const outbox = yield* Outbox
  const source_id = `crashed:${agent_id}:${yield* Clock.currentTimeMillis}`
  yield* retryDatabase(
    outbox.notify({ agent_id, dms: boundDms(bindings), source_id, text, ...(advice === undefined ? {} : { advice }) })
  )
})

/** The shortest outage to report; a restart of the server is shorter. */
const TOLD_MS = 60_000
const MINUTE_MS = 60_000

/** Reads the facts for the next step of a run, however long the database is away. After a long outage the person at the DM gets a message. */
export const afterOutage = Effect.fnUntraced(function* <A, R>(notified: Notified, read: Effect.Effect<A, never, R>) {
  const since_ms = yield* monotonicMs
  const answer = yield* read
  const waited_ms = (yield* monotonicMs) - since_ms
  if (waited_ms >= TOLD_MS) {
    const minutes = Math.round(waited_ms / MINUTE_MS)
    yield* tell(notified, `My database did not answer for ${minutes} min, so I could not work. It is back.`)
  }
  return answer
})
