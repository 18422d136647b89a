/** A text of at most one message: with its marks, else plain, else as a file. */
import { Effect } from "effect"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import type { Chat } from "./Chat.ts"
import { makeSendUntilTaken, type Outcome, type Send } from "./sendUntilTaken.ts"
import { isGone, isHopeless } from "./TelegramFailed.ts"
import type { MarkedText } from "./markedText.ts"
import type { Target, Upload } from "./telegramCalls.ts"
import { TelegramApi } from "./TelegramApi.ts"

/** A text as a file. */
export const fileOf = (text: string): Upload => ({ name: "message.txt", bytes: new TextEncoder().encode(text) })

/** Makes calls in this order until Telegram takes one, or will take none; returns the last refusal if so. */
export const makeFirstTaken = Effect.map(makeSendUntilTaken, (sendUntilTaken) =>
  Effect.fnUntraced(function* (chat: Chat, row: Outgoing, calls: ReadonlyArray<Send>) {
    let outcome: Outcome = {}
    for (const call of calls) {
      outcome = yield* sendUntilTaken(chat, row, call)
      const { refused } = outcome
      if (refused === undefined || !isHopeless(refused) || isGone(refused)) break
    }
    return outcome
  })
)

/** Makes what sends a part of a row. */
export const makeSendPart = Effect.gen(function* () {
  const api = yield* TelegramApi
  const firstTaken = yield* makeFirstTaken
  return (chat: Chat, row: Outgoing, { entities, text }: MarkedText) =>
    firstTaken(chat, row, [
      ...(entities.length === 0 ? [] : [(to: Target) => api.send(to, text, { entities })]),
      (to) => api.send(to, text),
      (to) => api.document(to, fileOf(text))
    ])
})
