/** The pace of a bot: the intervals between its messages, and the pauses that Telegram asks for (R43). */
import { Effect } from "effect"
import { isGroupId } from "#src/shared/config/people.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** The intervals between two messages to one person, to one group, and between any two of one bot (R43). */
const TELEGRAM_CHAT_INTERVAL_MS = 1000
const TELEGRAM_GROUP_INTERVAL_MS = 3000
const TELEGRAM_BOT_INTERVAL_MS = 40

/** The pace of one chat. A pause that one call was asked for holds all others of the chat back. */
export interface Pace {
  /** Waits for the turn of a message. */
  readonly message: Effect.Effect<void>
  /** Waits for the turn of a call that shows nothing lasting, such as that the bot types. Messages of the bot go first. */
  readonly sign: Effect.Effect<void>
  hold(pause_ms: number): Effect.Effect<void>
}

/** Lets its callers through one after the other, at least `interval_ms` apart. */
const makeGate = (interval_ms: number) => {
  let next_ms = 0
  return {
    /** Waits for its turn, and for as long as others go first. */
    pass: (othersFirst = () => false) =>
      Effect.gen(function* () {
        // A pause may come while this one waits.
        for (;;) {
          const open_in_ms = next_ms - (yield* monotonicMs)
          const wait_ms = othersFirst() ? Math.max(open_in_ms, interval_ms) : open_in_ms
          if (wait_ms <= 0) break
          yield* Effect.sleep(wait_ms)
        }
        next_ms = (yield* monotonicMs) + interval_ms
      }),
    hold: (pause_ms: number) =>
      Effect.map(monotonicMs, (now_ms) => void (next_ms = Math.max(next_ms, now_ms + pause_ms)))
  }
}

/** Makes the paces of a bot's chats, one for each. */
export const makePaces = () => {
  const bot = makeGate(TELEGRAM_BOT_INTERVAL_MS)
  let texts = 0
  const passText = Effect.acquireUseRelease(
    Effect.sync(() => (texts += 1)),
    () => bot.pass(),
    () => Effect.sync(() => (texts -= 1))
  )
  return (chat_id: string): Pace => {
    const messages = makeGate(isGroupId(chat_id) ? TELEGRAM_GROUP_INTERVAL_MS : TELEGRAM_CHAT_INTERVAL_MS)
    const signs = makeGate(0)
    return {
      message: Effect.andThen(messages.pass(), passText),
      sign: Effect.andThen(
        signs.pass(),
        bot.pass(() => texts > 0)
      ),
      hold: (pause_ms) => Effect.andThen(messages.hold(pause_ms), signs.hold(pause_ms))
    }
  }
}
