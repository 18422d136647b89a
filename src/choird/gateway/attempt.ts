/** One call that sends a part of a row of the outbox, tried until Telegram takes it or will never take it. */
import { Clock, Effect, Result } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { makeDropTopic } from "./jobTopics.ts"
import { makeMoveChat } from "./movedChats.ts"
import type { Pace } from "./Pace.ts"
import type { Target } from "./telegramCalls.ts"
import type { TelegramFailed } from "./TelegramFailed.ts"

/** The first and the longest pause after a failed call (R44). */
export const TELEGRAM_RETRY_MS = 1000
export const TELEGRAM_RETRY_MS_MAX = 60_000
/** The longest retry_after of Telegram that is waited out in one piece. */
const TELEGRAM_RETRY_AFTER_MS_MAX = 600_000
/** The wait after the n-th failure in a row, from 0: doubling up to a minute, unless Telegram asks for a different one. */
export const pauseAfter = ({ retry_after_ms }: Pick<TelegramFailed, "retry_after_ms">, failures: number): number =>
  retry_after_ms === null
    ? Math.min(TELEGRAM_RETRY_MS * 2 ** Math.min(failures, 10), TELEGRAM_RETRY_MS_MAX)
    : Math.min(Math.max(retry_after_ms, TELEGRAM_RETRY_MS), TELEGRAM_RETRY_AFTER_MS_MAX)

/** The chat will never come back: the group or the account is gone, or the bot was put out of it. */
export const isGone = ({ code, description }: TelegramFailed) =>
  (code === 403 || code === 400) &&
  /user is deactivated|bot was kicked|bot is not a member|(?:group )?chat was deleted|chat_id is empty/iu.test(
    description
  )

/** The person cannot be reached: has never written to the bot, or has blocked it. */
export const isUnreachable = ({ code, description }: TelegramFailed) =>
  code === 403 || (code === 400 && /chat not found/iu.test(description))

/** Telegram will never accept this text or file, and everything behind it would wait forever. */
export const isHopeless = (failure: TelegramFailed) =>
  failure.code === 413 || (failure.code === 400 && !isUnreachable(failure))

const isThreadGone = ({ code, description }: TelegramFailed) =>
  code === 400 && /thread not found|topic_(?:closed|deleted)/iu.test(description)

/** The longest wait of a message for a person who has blocked the bot or never wrote to it. */
const UNREACHABLE_MS_MAX = 24 * 60 * 60 * 1000

/** A chat with its DM. Its id changes when its group becomes a supergroup. */
export interface Chat {
  readonly dm: ResourceName
  /** Its id in config.json. */
  readonly user_id: string
  chat_id: string
  readonly pace: Pace
  /** The message whose topic is gone: its further parts go to the chat at once. */
  outside?: string
}

/** Telegram's id of a message that it took, or its last refusal. */
export interface Outcome {
  readonly refused?: TelegramFailed
  readonly sent_id?: string | undefined
}

export type Send = (to: Target) => Effect.Effect<string | undefined, TelegramFailed>

/** One call, however long it takes; returns the failure if it will never succeed. */
export const makeAttempt = Effect.gen(function* () {
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
      yield* chat.pace.message
      const sent = yield* Effect.result(send({ ...to, chat_id: chat.chat_id }))
      if (Result.isSuccess(sent)) return { sent_id: sent.success }
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
      if (failures === 0) yield* Effect.logWarning(failure.message, { dm: row.dm, outbox_id: row.outbox_id })
      if (failure.retry_after_ms !== null) yield* chat.pace.hold(failure.retry_after_ms)
      const age_ms = (yield* Clock.currentTimeMillis) - row.created_ms
      if (isGone(failure) || isHopeless(failure) || (isUnreachable(failure) && age_ms > UNREACHABLE_MS_MAX))
        return { refused: failure }
      yield* Effect.sleep(pauseAfter(failure, failures))
    }
  })
})
