/** What an agent's person hears after an outage of the database that kept the agent from going on. */
import { Effect } from "effect"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { type RunContext, tell } from "./RunContext.ts"

/** An outage of at least this length is told; a restart of the server is not. */
const TOLD_MS = 60_000
const MINUTE_MS = 60_000

/** Reads patiently what the next step of a run depends on. A person whose agent waited long for the database is told so at the DM. */
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
