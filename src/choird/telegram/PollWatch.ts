/** The watch over a bot's polls: it tells people elsewhere of a bot that cannot be reached, and its own chats when it can again (R44). */
import { Clock, Effect } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { GatewayAlerts, type Waiting } from "#src/choird/gateway/GatewayAlerts.ts"
import type { Arrival } from "#src/choird/gateway/Arrival.ts"

/** A bot without a successful poll for this long is deaf, whatever the reason. */
const POLL_DEAF_MS = 90_000
/** The interval of the looks at a bot that is already deaf, or about which no notice could be stored. */
const POLL_LOOK_MS = 10_000
/** Conflicts in a row that mean another program, and not this bot's own last connection. */
const POLL_CONFLICTS_MAX = 3

export interface PollWatch {
  /** A poll succeeded, with these messages. */
  heard(arrivals: ReadonlyArray<Arrival>): Effect.Effect<void>
  /** A poll failed, after so many that failed before it. */
  failed(failure: PollFailed, failures: number): Effect.Effect<void>
  /** Notices silence; never ends. */
  readonly run: Effect.Effect<never>
}

/** A failure, with Telegram's code where its answer to the poll is what failed. */
interface PollFailed {
  readonly message: string
  readonly code?: number
}

/** Whether a failed poll will not pass by itself. */
const isLasting = ({ code }: PollFailed, failures: number): boolean =>
  code === 401 || code === 404 || (code === 409 && failures + 1 >= POLL_CONFLICTS_MAX)

const chatOf = ({ group, user_id }: Arrival) => group?.chat_id ?? user_id

const NOTHING: Waiting = new Map()

/** A notice that cannot be stored does not stop the bot. */
const tolerant = <A>(work: Effect.Effect<A, DatabaseAway>, otherwise: A) =>
  Effect.catchCause(work, (cause) =>
    Effect.as(Effect.logWarning("a notice about a bot was not stored", cause), otherwise)
  )

export const makePollWatch = Effect.fnUntraced(function* (gateway: ResourceName) {
  const alerts = yield* GatewayAlerts
  let since_ms = yield* Clock.currentTimeMillis
  // Spans do not follow a clock that is set.
  let heard_at = yield* monotonicMs
  let told = false
  let problem = "Telegram does not answer"
  let waiting = NOTHING

  const tell = (words: string) =>
    Effect.gen(function* () {
      const from = since_ms
      const isTold = yield* tolerant(Effect.as(alerts.away({ gateway, since_ms }, words), true), false)
      // The bot may be back meanwhile.
      if (from === since_ms) told = isTold
    })

  return {
    heard: Effect.fnUntraced(function* (arrivals) {
      const now = yield* monotonicMs
      yield* tolerant(alerts.back({ gateway, since_ms }, now - heard_at, waiting, arrivals.map(chatOf)), undefined)
      since_ms = yield* Clock.currentTimeMillis
      heard_at = now
      told = false
      waiting = NOTHING
    }),
    failed: Effect.fnUntraced(function* (failure, failures) {
      problem = failure.message
      waiting = yield* tolerant(alerts.waiting(gateway), waiting)
      if (!told && isLasting(failure, failures)) yield* tell(problem)
    }),
    run: Effect.gen(function* () {
      for (;;) {
        const silent_ms = (yield* monotonicMs) - heard_at
        if (silent_ms < POLL_DEAF_MS) {
          yield* Effect.sleep(POLL_DEAF_MS - silent_ms)
          continue
        }
        if (!told) yield* tell(`no successful poll for ${Math.round(silent_ms / 1000)} s. ${problem}`)
        yield* Effect.sleep(POLL_LOOK_MS)
      }
    })
  } satisfies PollWatch
})
