/** Messages of the outbox whose form is more than a text: with buttons, as an edit of an earlier message, or with a file. */
import { Effect } from "effect"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { shownText } from "#src/choird/approvals/requestTypes.ts"
import { chatText, type Outgoing } from "#src/choird/queues/Outbox.ts"
import type { OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import { TelegramApi } from "./TelegramApi.ts"
import type { TelegramFailed } from "./TelegramFailed.ts"

/** Telegram has this text already, so that an edit before a crash was made. */
const isUnchanged = ({ code, description }: TelegramFailed) => code === 400 && /not modified/iu.test(description)

/** Replaces the text of the earlier message; where that is gone, or was never noted, it is a message of its own. */
const sendEdit = Effect.fnUntraced(function* (chat_id: string, row: Outgoing) {
  const api = yield* TelegramApi
  const text = chatText(row)
  const { edited_id = null } = row
  if (edited_id === null) return yield* api.send(chat_id, text)
  return yield* Effect.as(api.edit(chat_id, edited_id, text), edited_id).pipe(
    Effect.catchTag("TelegramFailed", (failure) => {
      if (isUnchanged(failure)) return Effect.succeed(edited_id)
      return failure.code === 400 ? api.send(chat_id, text) : Effect.fail(failure)
    })
  )
})

const sendDocument = Effect.fnUntraced(function* (
  chat_id: string,
  row: Outgoing,
  { approval_id, name }: NonNullable<OutboxForm["document"]>
) {
  const api = yield* TelegramApi
  const approvals = yield* Approvals
  const found = yield* Effect.result(approvals.get(approval_id))
  // An approval that retention removed has nothing left to decide.
  if (found._tag === "Failure") return undefined
  const bytes = Buffer.from(shownText(found.success))
  return yield* api.document(chat_id, { name, bytes }, chatText(row))
})

/** Sends a message in its form; returns Telegram's id of it. */
export const sendRow = (chat_id: string, row: Outgoing) =>
  Effect.gen(function* () {
    const api = yield* TelegramApi
    const form = row.form ?? {}
    if (form.document !== undefined) return yield* sendDocument(chat_id, row, form.document)
    if (form.edits !== undefined) return yield* sendEdit(chat_id, row)
    return yield* api.send(chat_id, chatText(row), form.buttons)
  })
