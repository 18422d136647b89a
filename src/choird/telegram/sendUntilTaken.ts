/** One call that sends a part of a row of the outbox, tried until Telegram takes it or will never take it. */
import { Clock, Effect, Result } from "effect"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox, type Outgoing, type SentAs } from "#src/choird/queues/Outbox.ts"
import type { Chat } from "./Chat.ts"
import { makeDropTopic } from "./jobTopics.ts"
import { makeMoveChat } from "./movedChats.ts"
import type { Target } from "./telegramCalls.ts"
import { isGone, isHopeless, isUnreachable, pauseAfter, type TelegramFailed } from "./TelegramFailed.ts"
import { whileHere } from "#src/choird/gateway/untilRecorded.ts"
import { DAY_MS } from "#src/shared/days.ts"

const isThreadGone = ({ code, description }: TelegramFailed) =>
  code === 400 && /thread not found|topic_(?:closed|deleted)/iu.test(description)

/** The message that is quoted is gone, or the bot may not quote it. */
const isQuoteRefused = ({ code, description }: TelegramFailed) =>
  code === 400 && /repl(?:y|ied)|quote|\brights\b|MSG_ID_INVALID|MESSAGE_ID_INVALID/iu.test(description)

/** The longest wait of a message for a person who has blocked the bot or never wrote to it. */
const UNREACHABLE_MS_MAX = DAY_MS

/** The message that Telegram took, where it said which one that is, or its last refusal. */
export interface Outcome {
  readonly refused?: TelegramFailed
  readonly sent?: SentAs
}

export type Send = (to: Target) => Effect.Effect<string | undefined, TelegramFailed>

/** One call, however long it takes; returns the failure if it will never succeed. */
export const makeSendUntilTaken = Effect.gen(function* () {
  const dropTopic = yield* makeDropTopic
  const moveChat = yield* makeMoveChat
  const outbox = yield* Outbox
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing, send: Send): Effect.fn.Return<Outcome, DatabaseAway> {
    let to: Omit<Target, "chat_id"> = {
      thread_id: chat.outside === row.outbox_id ? undefined : (row.thread_id ?? undefined),
      // Only the first part quotes what it answers.
      reply_to: (row.sent_parts ?? 0) === 0 ? (row.reply_to ?? undefined) : undefined
    }
    for (let failures = 0; ; failures += 1) {
      yield* whileHere(chat, chat.pace.message)
      // A group may get another id while the call runs.
      const { chat_id } = chat
      const sent = yield* Effect.result(send({ ...to, chat_id }))
      if (Result.isSuccess(sent))
        return sent.success === undefined ? {} : { sent: { chat_id, message_id: sent.success } }
      const { failure } = sent
      yield* outbox.failed(row.outbox_id)
      if (failure.migrated_to !== undefined) {
        yield* moveChat(chat, failure.migrated_to)
        continue
      }
      if (isThreadGone(failure) && to.thread_id !== undefined) {
        yield* Effect.logWarning("the topic of a message is gone; it goes to the chat", { dm: row.dm })
        yield* dropTopic(chat, to.thread_id)
        chat.outside = row.outbox_id
        to = { reply_to: to.reply_to }
        continue
      }
      if (isQuoteRefused(failure) && to.reply_to !== undefined && !isGone(failure)) {
        yield* Effect.logInfo(`a message goes out without its quote: ${failure.message}`, { dm: row.dm })
        to = { thread_id: to.thread_id }
        continue
      }
      if (failures === 0) yield* Effect.logWarning(failure.message, { dm: row.dm, outbox_id: row.outbox_id })
      if (failure.retry_after_ms !== null) yield* chat.pace.hold(failure.retry_after_ms)
      const age_ms = (yield* Clock.currentTimeMillis) - row.created_ms
      if (isGone(failure) || isHopeless(failure) || (isUnreachable(failure) && age_ms > UNREACHABLE_MS_MAX))
        return { refused: failure }
      yield* whileHere(chat, Effect.sleep(pauseAfter(failure, failures)))
    }
  })
})
