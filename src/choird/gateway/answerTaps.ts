/** Taps of a batch: each is decided and answered before anything else of it, since a person waits with a finger on the screen. */
import { Effect } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { CardTaps } from "./CardTaps.ts"
import type { TelegramTap } from "./readUpdates.ts"
import { TelegramApi } from "./TelegramApi.ts"

const answer = Effect.fnUntraced(function* (gateway: ResourceName, tap: TelegramTap) {
  const api = yield* TelegramApi
  const taps = yield* CardTaps
  const said = yield* taps.tap(gateway, tap)
  if (said === undefined) return
  const { callback_id, chat_id, message_id } = tap
  // A card that a crash doubled keeps its buttons, until somebody taps one of them.
  const dropped =
    said.loud && chat_id !== undefined && message_id !== undefined ? api.dropButtons(chat_id, message_id) : Effect.void
  // Telegram may be slow or refuse the answer to an old tap; the decision stands, and the card tells of it.
  yield* Effect.andThen(Effect.ignore(api.answerTap(callback_id, said.text, said.loud)), Effect.ignore(dropped)).pipe(
    Effect.forkChild({ startImmediately: true })
  )
})

export const answerTaps = (gateway: ResourceName, taps: ReadonlyArray<TelegramTap>) =>
  Effect.forEach(taps, (tap) => answer(gateway, tap), { discard: true })
