/**
 * R13: how long until choird has what people wait for, while one agent commits 200 events a second. An event's own time is compared with
 * the moment at which it comes out of choird's stream of stored events, so that the way from the store to this process counts as well.
 */
import { Clock, Effect, Fiber, Stream } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import type { InstallationOptions } from "../test/support/installation.ts"
import { startAgent } from "./agent.ts"
import { onPostgres } from "./postgres.ts"
import { atMost, place, type Row } from "./Row.ts"

const JOBS = 10
const STEPS = 150
/** The model's time for an answer: with four events a step and ten jobs about 200 events a second. */
const MODEL_MS = 185
const ORDINARY_MS_MAX = 5000

/** Events that are sent at once (D7); external intents are not among the calls of this agent. */
const VISIBLE: ReadonlySet<ChoirEvent["event_type"]> = new Set([
  "UserMsg",
  "ModelOutput",
  "AgentMessage",
  "CoreStarted",
  "CoreStopped",
  "Cancelled"
])

interface Seen {
  readonly event: ChoirEvent
  readonly at_ms: number
}

const measure = (options: Partial<InstallationOptions>) =>
  Effect.gen(function* () {
    const { choir, jobs, session_id } = yield* startAgent(options)
    yield* jobs(JOBS, "read", STEPS, 0)
    const { last_rev } = yield* choir.api.session.show({ params: { id: session_id! } })
    const seen: Array<Seen> = []
    const query = { from: last_rev + 1, follow: "true" } as const
    const following = yield* Stream.unwrap(choir.api.sessions.events({ params: { id: session_id! }, query })).pipe(
      Stream.filter(isPrintedEvent),
      Stream.runForEach(({ event }) =>
        Effect.map(Clock.currentTimeMillis, (at_ms) => void seen.push({ event, at_ms }))
      ),
      Effect.forkScoped
    )
    yield* jobs(JOBS, "read", STEPS, MODEL_MS)
    yield* Effect.sleep(ORDINARY_MS_MAX)
    yield* Fiber.interrupt(following)
    // Without the first and the last seconds, in which the jobs begin and end together.
    const inside = seen.slice(seen.length >> 3, -(seen.length >> 3))
    const waits = (visible: boolean) =>
      inside
        .filter(({ event }) => VISIBLE.has(event.event_type) === visible)
        .map(({ at_ms, event }) => at_ms - Date.parse(event.created_at))
    const [first, last] = [inside[0], inside.at(-1)]
    const seconds = (Date.parse(last?.event.created_at ?? "") - Date.parse(first?.event.created_at ?? "")) / 1000
    const rate = Math.round(inside.length / seconds)
    return [
      atMost("R13", `visible event acknowledged, p50 at ${rate} events/s`, place(waits(true), 0.5), "ms", 100),
      atMost("R13", `visible event acknowledged, p99 at ${rate} events/s`, place(waits(true), 0.99), "ms", 100),
      atMost("R13", `any other event acknowledged, the latest`, Math.max(...waits(false)), "ms", ORDINARY_MS_MAX)
    ]
  }).pipe(Effect.scoped)

export const visible: Effect.Effect<ReadonlyArray<Row>, unknown> = onPostgres("R13", measure)
