/** One row of the outbox as Telegram takes it: with its marks, else plain, else as a file. */
import { Effect } from "effect"
import { chatText } from "#src/choird/queues/chatText.ts"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { isGroupId } from "#src/shared/config/people.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import type { Refusal, Sending } from "#src/choird/gateway/Channel.ts"
import { makeJobTopics } from "./jobTopics.ts"
import { hasTable } from "./markdownBlocks.ts"
import { richBlocks } from "./richBlocks.ts"
import type { Chat } from "./Chat.ts"
import { makeSendUntilTaken, type Outcome } from "./sendUntilTaken.ts"
import { isGone, isHopeless, isUnreachable, type TelegramFailed } from "./TelegramFailed.ts"
import { isLong, messageParts, TELEGRAM_TEXT_CHARS_MAX } from "./messageParts.ts"
import { makeSendFiles } from "./sendFiles.ts"
import { fileOf, makeSendPart } from "./sendPart.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { shownText } from "#src/choird/approvals/requestTypes.ts"
import type { OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import type { Target } from "./telegramCalls.ts"

/** Telegram already has this text, so that an edit before a crash was made. */
const isUnchanged = ({ code, description }: TelegramFailed) => code === 400 && /not modified/iu.test(description)

type Api = TelegramApi["Service"]

/** Replaces the text of the earlier message; where that is gone, or was never noted, it is a message of its own. */
const sendEdit = (api: Api, to: Target, row: Outgoing) => {
  const text = chatText(row)
  const { edited_id = null } = row
  if (edited_id === null) return api.send(to, text)
  return Effect.as(api.edit(to.chat_id, edited_id, text), edited_id).pipe(
    Effect.catchTag("TelegramFailed", (failure) => {
      if (isUnchanged(failure)) return Effect.succeed(edited_id)
      return isHopeless(failure) && failure.migrated_to === undefined ? api.send(to, text) : Effect.fail(failure)
    })
  )
}

/** Makes what sends a message in its form and returns Telegram's id of it. */
const makeSendRow = Effect.gen(function* () {
  const api = yield* TelegramApi
  const approvals = yield* Approvals

  const sendDocument = Effect.fnUntraced(function* (
    to: Target,
    row: Outgoing,
    { approval_id, name }: NonNullable<OutboxForm["document"]>
  ) {
    const found = yield* Effect.result(approvals.get(approval_id))
    // An approval that retention removed has nothing left to decide.
    if (found._tag === "Failure") return undefined
    const bytes = Buffer.from(shownText(found.success))
    return yield* api.document(to, { name, bytes }, chatText(row))
  })

  return (to: Target, row: Outgoing, { buttons, document, edits }: OutboxForm) => {
    if (document !== undefined) return sendDocument(to, row, document)
    if (edits !== undefined) return sendEdit(api, to, row)
    return api.send(to, chatText(row), buttons === undefined ? {} : { buttons })
  }
})

/** The blocks of a row that is better shown as a rich message, to a person who switched them on. */
const richOf = (row: Outgoing) =>
  row.source === "event" && (row.text.length > TELEGRAM_TEXT_CHARS_MAX || hasTable(row.text))
    ? richBlocks(row)
    : undefined

/** A row without its quotation where the message that it answers stands right above it. In a group others write, and choird does not see all of it. */
const unquoted = (chat: Chat, row: Outgoing): Outgoing =>
  row.follows === true && !isGroupId(chat.chat_id) ? { ...row, reply_to: null } : row

/** Sends a row from its first part that was not sent. */
const makeSend = Effect.gen(function* () {
  const api = yield* TelegramApi
  const sendUntilTaken = yield* makeSendUntilTaken
  const outbox = yield* Outbox
  const sendPart = yield* makeSendPart
  const sendFiles = yield* makeSendFiles
  const sendRow = yield* makeSendRow
  const settings = yield* ChatSettings
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const { form } = row
    if (form?.files !== undefined) return yield* sendFiles(chat, row)
    if (form) {
      const outcome = yield* sendUntilTaken(chat, row, (to) => sendRow(to, row, form))
      // A card without its buttons says by which commands it is decided; a file that is shown before a decision has no such way out.
      if (form.document !== undefined || outcome.refused === undefined || !isHopeless(outcome.refused)) return outcome
    }
    const rich = (row.sent_parts ?? 0) === 0 && (yield* settings.rich(row.dm)) ? richOf(row) : undefined
    if (rich !== undefined) {
      const outcome = yield* sendUntilTaken(chat, row, (to) => api.sendRich(to, rich))
      if (outcome.refused === undefined || !isHopeless(outcome.refused)) return outcome
    }
    if ((row.sent_parts ?? 0) === 0 && isLong(row)) {
      const outcome = yield* sendUntilTaken(chat, row, (to) => api.document(to, fileOf(chatText(row))))
      if (outcome.refused === undefined || !isHopeless(outcome.refused)) return outcome
    }
    const parts = messageParts(row, TELEGRAM_TEXT_CHARS_MAX)
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

/** A refusal as the delivery knows it. */
const refusalOf = (failure: TelegramFailed): Refusal => ({
  description: failure.description,
  message: failure.message,
  is_closed: isUnreachable(failure) || isGone(failure)
})

/** Makes what sends a row to its chat, in the topic of its job. */
export const makeSendMessage = Effect.gen(function* () {
  const send = yield* makeSend
  const topics = yield* makeJobTopics
  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    const { refused, sent } = yield* send(chat, unquoted(chat, yield* topics.place(chat, row)))
    return {
      ...(sent === undefined ? {} : { sent }),
      ...(refused === undefined ? {} : { refused: refusalOf(refused) })
    } satisfies Sending
  })
})
