/** Messages of the outbox whose form is more than a text: with buttons, as an edit of an earlier message, or with a file. */
import { Effect } from "effect"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { shownText } from "#src/choird/approvals/requestTypes.ts"
import { chatText, type Outgoing } from "#src/choird/queues/Outbox.ts"
import type { OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import type { Target } from "./telegramCalls.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isHopeless, type TelegramFailed } from "./TelegramFailed.ts"

/** Telegram has this text already, so that an edit before a crash was made. */
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
export const makeSendRow = Effect.gen(function* () {
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
