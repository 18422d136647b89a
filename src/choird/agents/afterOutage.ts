/** The end of an outage of the database, as a run and the person at its DM notice it. */
import { Effect } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { type RunContext, tell } from "./RunContext.ts"

/** The shortest outage to report; a restart of the server is shorter. */
const TOLD_MS = 60_000
const MINUTE_MS = 60_000

/** Reads the facts for the next step of a run, however long the database is away. After a long outage the person at the DM gets a message. */
export const afterOutage = Effect.fnUntraced(function* <A>(
  context: Pick<RunContext, "agent_id" | "bindings" | "services">,
  read: Effect.Effect<A>
) {
  const since_ms = yield* monotonicMs
  const answer = yield* read
  const waited_ms = (yield* monotonicMs) - since_ms
  if (waited_ms >= TOLD_MS) {
    const minutes = Math.round(waited_ms / MINUTE_MS)
    yield* tell(context, `My database did not answer for ${minutes} min, so I could not work. It is back.`)
  }
  return answer
})
