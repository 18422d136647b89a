/**
 * The reaction to a message that its agent's queue took: the person sees that it arrived. The answer takes it away. Nothing waits for a
 * reaction, and one that Telegram does not take is left out.
 */
import { Effect, Queue, Result, Stream } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { Chat } from "./attempt.ts"
import { ChatSettings } from "./ChatSettings.ts"
import { type Mark, Presence } from "./Presence.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isHopeless, isUnreachable, pauseAfter, type TelegramFailed } from "./TelegramFailed.ts"

/** One of the emoji that Telegram lets a bot react with. */
const SEEN = "👀"
/** The interval between two reactions in one chat. */
const REACTION_INTERVAL_MS = 1000
/** Messages of a chat whose reaction waits, and those that are remembered as having one; the oldest are left out. */
const REACTIONS_MAX = 100
const REACTION_ATTEMPTS_MAX = 3

/** Removes the oldest entries of a map or a set that has too many. */
const forgetOldest = (keys: Map<number, Mark> | Set<number>) => {
  for (const oldest of keys.keys()) {
    if (keys.size <= REACTIONS_MAX) return
    keys.delete(oldest)
  }
}

/** The same call would be refused again. */
const isFinal = (failure: TelegramFailed) => isHopeless(failure) || isUnreachable(failure)

/** The marks that wait, the newest of each message. */
const makeMarks = Effect.fnUntraced(function* (dm: ResourceName) {
  const presence = yield* Presence
  const waiting = new Map<number, Mark>()
  const wakes = yield* Queue.sliding<void>(1)
  yield* presence.marks(dm).pipe(
    Stream.runForEach((mark) => {
      const { message_id, seen } = mark
      const before = waiting.get(message_id)
      waiting.delete(message_id)
      // What was answered before its reaction was shown needs neither.
      if (seen || before?.seen !== true) waiting.set(message_id, mark)
      forgetOldest(waiting)
      return Queue.offer(wakes, undefined)
    }),
    Effect.forkScoped({ startImmediately: true })
  )
  return {
    take: Effect.gen(function* () {
      for (;;) {
        const [mark] = waiting.values()
        if (mark !== undefined) {
          waiting.delete(mark.message_id)
          return mark
        }
        yield* Queue.take(wakes)
      }
    }),
    isOvertaken: ({ message_id }: Mark) => waiting.has(message_id)
  }
})

/** Shows the reactions of a DM. Where the server of the bot knows none, it ends. */
export const showReactions = Effect.fnUntraced(function* (chat: Chat) {
  const { dm, pace } = chat
  const api = yield* TelegramApi
  const marks = yield* makeMarks(dm)
  const settings = yield* ChatSettings
  const shown = new Set<number>()

  const show = Effect.fnUntraced(function* (mark: Mark) {
    const { message_id, seen } = mark
    for (let failures = 0; failures < REACTION_ATTEMPTS_MAX && !marks.isOvertaken(mark); failures += 1) {
      yield* pace.sign
      const done = yield* Effect.result(api.react(chat.chat_id, message_id, seen ? SEEN : undefined))
      if (Result.isSuccess(done)) {
        if (seen) shown.add(message_id)
        forgetOldest(shown)
        return yield* Effect.as(Effect.sleep(REACTION_INTERVAL_MS), true)
      }
      const { failure } = done
      if (failure.code === 404) {
        yield* Effect.logInfo("the server of this bot shows no reactions", { dm, reason: failure.message })
        return false
      }
      if (isFinal(failure)) return yield* Effect.as(Effect.sleep(REACTION_INTERVAL_MS), true)
      yield* Effect.sleep(pauseAfter(failure, failures))
    }
    return true
  })

  for (;;) {
    const mark = yield* marks.take
    const wasShown = shown.delete(mark.message_id)
    const wanted = yield* Effect.orElseSucceed(settings.reactions(dm), () => false)
    // One that is on stays until the answer, also when the person has switched them off meanwhile.
    if ((wanted || (wasShown && !mark.seen)) && !(yield* show(mark))) return
  }
}, Effect.scoped)
