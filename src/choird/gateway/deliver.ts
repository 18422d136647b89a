/** The delivery of one row of the outbox to its chat: with its marks, else plain, else as a file, else given up and told. */
import { Clock, Effect, Result } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { chatText, escapedText, Outbox, type Outgoing, TELEGRAM_TEXT_CHARS_MAX } from "#src/choird/queues/Outbox.ts"
import { ChatSettings } from "./ChatSettings.ts"
import { Gateways } from "./Gateways.ts"
import { hasTable, type MarkedText, markedText, splitMarked, trimmed } from "./markedText.ts"
import type { Pace } from "./Pace.ts"
import { makeSendRow } from "./sendForm.ts"
import { type Target, TelegramApi } from "./TelegramApi.ts"
import type { TelegramFailed } from "./TelegramFailed.ts"

/** The first and the longest pause after a failed call (R44). */
export const TELEGRAM_RETRY_MS = 1000
export const TELEGRAM_RETRY_MS_MAX = 60_000
/** The longest retry_after of Telegram that is waited out in one piece. */
const TELEGRAM_RETRY_AFTER_MS_MAX = 600_000
/** Characters of a rich message. */
const RICH_CHARS_MAX = 32_768

/** The wait after the n-th failure in a row, from 0: doubling up to a minute, unless Telegram asks for a different one. */
export const pauseAfter = ({ retry_after_ms }: Pick<TelegramFailed, "retry_after_ms">, failures: number): number =>
  retry_after_ms === null
    ? Math.min(TELEGRAM_RETRY_MS * 2 ** Math.min(failures, 10), TELEGRAM_RETRY_MS_MAX)
    : Math.min(Math.max(retry_after_ms, TELEGRAM_RETRY_MS), TELEGRAM_RETRY_AFTER_MS_MAX)

/** The chat will never come back: the group or the account is gone, or the bot was put out of it. */
const isGone = ({ code, description }: TelegramFailed) =>
  (code === 403 || code === 400) &&
  /user is deactivated|bot was kicked|bot is not a member|(?:group )?chat was deleted|chat_id is empty/iu.test(
    description
  )

/** The person cannot be reached: has never written to the bot, or has blocked it. */
export const isUnreachable = ({ code, description }: TelegramFailed) =>
  code === 403 || (code === 400 && /chat not found/iu.test(description))

/** Telegram will never accept this text, and everything behind it would wait forever. */
export const isHopeless = (failure: TelegramFailed) => failure.code === 400 && !isUnreachable(failure)

const isThreadGone = ({ code, description }: TelegramFailed) =>
  code === 400 && /thread not found|topic_(?:closed|deleted)/iu.test(description)

/** The longest wait of a message for a person who has blocked the bot or never wrote to it. */
const UNREACHABLE_MS_MAX = 24 * 60 * 60 * 1000

/** The source of notices about undeliverable messages; an undeliverable notice causes no further one. */
const GIVEN_UP = "given-up/"

/** A chat with its DM. Its id changes when its group becomes a supergroup. */
export interface Chat {
  readonly dm: ResourceName
  chat_id: string
  readonly pace: Pace
}

/** The parts of a row that are messages of their own. choird's own texts are plain, and were split when they were stored. */
const partsOf = (row: Outgoing): ReadonlyArray<MarkedText> =>
  row.source === "choird"
    ? [{ text: chatText(row), entities: [] }]
    : splitMarked(markedText(escapedText(row.text)), TELEGRAM_TEXT_CHARS_MAX)
        .map(trimmed)
        .filter(({ text }) => text !== "")

/** Telegram's id of a message that it took, or its last refusal. */
interface Outcome {
  readonly refused?: TelegramFailed
  readonly sent_id?: string | undefined
}

type Call = (to: Target) => Effect.Effect<string | undefined, TelegramFailed>

/** One call, however long it takes; returns the failure if it will never succeed. */
const makeAttempt = Effect.gen(function* () {
  const outbox = yield* Outbox
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing, call: Call): Effect.fn.Return<Outcome, DatabaseAway> {
    let to: Omit<Target, "chat_id"> = {
      thread_id: row.thread_id ?? undefined,
      // Only the first part quotes what it answers.
      reply_to: (row.sent_parts ?? 0) === 0 ? (row.reply_to ?? undefined) : undefined
    }
    for (let failures = 0; ; failures += 1) {
      yield* chat.pace.message
      const sent = yield* Effect.result(call({ ...to, chat_id: chat.chat_id }))
      if (Result.isSuccess(sent)) return { sent_id: sent.success }
      const { failure } = sent
      yield* outbox.failed(row.outbox_id)
      if (failure.migrated_to !== undefined) {
        chat.chat_id = failure.migrated_to
        const fix = `a group has a new chat id: set user_id of dms.${chat.dm} to "${chat.chat_id}", so that its messages are heard`
        yield* Effect.logWarning(fix, { dm: chat.dm })
        continue
      }
      if (isThreadGone(failure) && to.thread_id !== undefined) {
        yield* Effect.logWarning("the topic of a message is gone; it goes to the chat", { dm: row.dm })
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

/** Sends a part with its marks, then without them, then as a file; returns the last refusal if Telegram takes none of these. */
const makeSendPart = Effect.gen(function* () {
  const api = yield* TelegramApi
  const attempt = yield* makeAttempt
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing, { entities, text }: MarkedText) {
    const calls: ReadonlyArray<Call> = [
      ...(entities.length === 0 ? [] : [(to: Target) => api.send(to, text, { entities })]),
      (to) => api.send(to, text),
      (to) => api.document(to, { name: "message.txt", bytes: new TextEncoder().encode(text) })
    ]
    let outcome: Outcome = {}
    for (const call of calls) {
      outcome = yield* attempt(chat, row, call)
      const { refused } = outcome
      if (refused === undefined || !isHopeless(refused) || isGone(refused)) break
    }
    return outcome
  })
})

/** Whether a row is better shown as a rich message, to a person who switched them on. */
const isRich = ({ source, text }: Outgoing) =>
  source === "event" && text.length <= RICH_CHARS_MAX && (hasTable(text) || text.length > TELEGRAM_TEXT_CHARS_MAX)

/** Sends a row from its first part that was not sent. */
const makeSend = Effect.gen(function* () {
  const api = yield* TelegramApi
  const attempt = yield* makeAttempt
  const outbox = yield* Outbox
  const sendPart = yield* makeSendPart
  const sendRow = yield* makeSendRow
  const settings = yield* ChatSettings
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const { form } = row
    if (form) return yield* attempt(chat, row, (to) => sendRow(to, row, form))
    if ((row.sent_parts ?? 0) === 0 && isRich(row) && (yield* settings.rich(row.dm))) {
      const outcome = yield* attempt(chat, row, (to) => api.sendRich(to, escapedText(row.text)))
      if (outcome.refused === undefined || !isHopeless(outcome.refused)) return outcome
    }
    const parts = partsOf(row)
    let outcome: Outcome = {}
    for (const [index, part] of parts.entries()) {
      if (index < (row.sent_parts ?? 0)) continue
      outcome = yield* sendPart(chat, { ...row, sent_parts: index }, part)
      if (outcome.refused !== undefined) return outcome
      if (index < parts.length - 1) yield* outbox.sentParts(row.outbox_id, index + 1)
    }
    return outcome
  })
})

/** Makes what delivers a row or gives up on it, and then reports that in the log, in `status` and to the person. */
export const makeDeliver = Effect.gen(function* () {
  const gateways = yield* Gateways
  const outbox = yield* Outbox
  const send = yield* makeSend
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const { refused, sent_id } = yield* send(chat, row)
    if (refused === undefined) return yield* outbox.delivered([row.outbox_id], sent_id)
    const { agent_id, dm, outbox_id } = row
    yield* Effect.logError("gave up on a message", { agent_id, dm, outbox_id, reason: refused.message })
    const isNew = yield* outbox.giveUp(outbox_id, refused.message)
    if (!isNew || row.source_id.startsWith(GIVEN_UP)) return undefined
    // A person who cannot be reached in this chat gets the notice in another one, if the agent has one.
    const place = isUnreachable(refused) || isGone(refused) ? yield* gateways.otherPlace(row) : row
    if (place === undefined) return undefined
    return yield* outbox.tell({
      gateway: place.gateway,
      dm: place.dm,
      agent_id,
      source_id: `${GIVEN_UP}${outbox_id}`,
      kind: "notice",
      text: `A message of ${agent_id} to the DM ${dm} could not be delivered: ${refused.description}. An operator finds it with choirctl session events.`,
      in_reply_to: null
    })
  })
})
