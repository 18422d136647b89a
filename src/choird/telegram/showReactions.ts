/**
 * The reaction to a message that its agent's queue took: the person sees that it arrived. The answer takes it away, after any death and any
 * outage. No text waits for a reaction, and one that Telegram does not take is left out.
 */
import { Effect, Option, Queue, Result, Stream } from "effect"
import type { InboxId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { type Reacted, Reactions } from "#src/choird/queues/Reactions.ts"
import type { Chat } from "./Chat.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isHopeless, isUnreachable, pauseAfter, type TelegramFailed } from "./TelegramFailed.ts"

/** One of the emoji that Telegram lets a bot react with. */
const SEEN = "👀"
/** The interval between two reactions in one chat. */
const REACTION_INTERVAL_MS = 1000
/** Messages of a chat that wait for their reaction; the oldest get none. */
const REACTIONS_WAITING_MAX = 100
/** Tries to show one. */
const REACTION_ATTEMPTS_MAX = 3

/** The server of the bot knows no reactions. */
const isUnknownMethod = ({ code }: TelegramFailed) => code === 404

/** The messages of a DM that came, and a wake for each look at those that are answered. */
const makeSeen = Effect.fnUntraced(function* ({ dm }: Chat) {
  const outbox = yield* Outbox
  const presence = yield* Presence
  const seen = yield* Queue.sliding<InboxId>(REACTIONS_WAITING_MAX)
  const wakes = yield* Queue.sliding<void>(1)
  const wake = Queue.offer(wakes, undefined)
  yield* presence.seen(dm).pipe(
    Stream.runForEach((inbox_id) => Effect.andThen(Queue.offer(seen, inbox_id), wake)),
    restarted("the watch of messages that came"),
    Effect.forkScoped({ startImmediately: true })
  )
  // An answer wakes the reader of its DM, as the beginning of choird's life does.
  yield* Stream.runForEach(outbox.wakes(dm), () => wake).pipe(
    restarted("what wakes the reactions of a chat"),
    Effect.forkScoped({ startImmediately: true })
  )
  return { next: Queue.poll(seen), woken: Queue.take(wakes) }
})

/** Makes the calls of one chat. */
const makeCalls = Effect.fnUntraced(function* (chat: Chat) {
  const api = yield* TelegramApi
  const presence = yield* Presence
  const reactions = yield* Reactions
  const settings = yield* ChatSettings

  const react = Effect.fnUntraced(function* (message_id: number, emoji: typeof SEEN | undefined) {
    yield* chat.pace.sign
    const done = yield* Effect.result(api.react(chat.chat_id, message_id, emoji))
    if (Result.isSuccess(done)) return undefined
    const { failure } = done
    if (failure.retry_after_ms !== null) yield* chat.pace.hold(failure.retry_after_ms)
    return failure
  })

  /** Shows the reaction of a message; returns the failure that keeps it back. */
  const show = Effect.fnUntraced(function* (inbox_id: InboxId) {
    const message_id = (yield* settings.reactions(chat.dm)) ? yield* reactions.begin(inbox_id) : undefined
    if (message_id === undefined) return undefined
    for (let failures = 0; failures < REACTION_ATTEMPTS_MAX && !presence.isAnswered(inbox_id); failures += 1) {
      const failure = yield* react(message_id, SEEN)
      if (failure === undefined) break
      if (isHopeless(failure) || isUnreachable(failure) || isUnknownMethod(failure)) {
        yield* reactions.ended(inbox_id)
        return failure
      }
      yield* Effect.sleep(pauseAfter(failure, failures))
    }
    return undefined
  })

  /** Takes the reaction of a message away; returns the failure that leaves it there. */
  const takeAway = Effect.fnUntraced(function* ({ inbox_id, message_id }: Reacted) {
    const failure = yield* react(message_id, undefined)
    // A message that is gone has none.
    if (failure !== undefined && !isHopeless(failure)) return failure
    yield* reactions.ended(inbox_id)
    return undefined
  })

  /** Takes away what answered messages still have; returns the failure that ends it before. */
  const takeAll = Effect.gen(function* () {
    let failures = 0
    for (;;) {
      const [oldest] = yield* retryDatabase(reactions.leftover(chat.dm))
      if (oldest === undefined) return undefined
      const failure = yield* retryDatabase(takeAway(oldest))
      // Somebody who blocked the bot is asked again after their next message, or in the next life of choird.
      if (failure !== undefined && (isUnreachable(failure) || isUnknownMethod(failure))) return failure
      failures = failure === undefined ? 0 : failures + 1
      yield* Effect.sleep(failure === undefined ? REACTION_INTERVAL_MS : pauseAfter(failure, failures - 1))
    }
  })
  return { show, takeAll }
})

/** Shows the reactions of a DM. Where the server of the bot knows none, it ends. */
export const showReactions = Effect.fnUntraced(function* (chat: Chat) {
  const { next, woken } = yield* makeSeen(chat)
  const { show, takeAll } = yield* makeCalls(chat)
  for (;;) {
    const left = yield* takeAll
    const inbox_id = Option.getOrUndefined(yield* next)
    // A reaction is not worth a wait for the database.
    const shown = inbox_id === undefined ? undefined : yield* Effect.orElseSucceed(show(inbox_id), () => undefined)
    const failure = left ?? shown
    if (failure !== undefined && isUnknownMethod(failure)) {
      const reason = failure.message
      return yield* Effect.logInfo("the server of this bot does not support reactions", { dm: chat.dm, reason })
    }
    yield* inbox_id === undefined ? woken : Effect.sleep(REACTION_INTERVAL_MS)
  }
}, Effect.scoped)
