/** Groups that became supergroups: they keep the DM of config.json, under the id that they have now, also after a restart. */
import { Effect } from "effect"
import type { Chat } from "./Chat.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import type { Move } from "./readUpdates.ts"
import type { Arrival } from "#src/choird/gateway/Arrival.ts"

/** Makes what notes the new id of a chat. */
export const makeMoveChat = Effect.map(ChatSettings, (settings) =>
  Effect.fnUntraced(function* (chat: Chat, to: string) {
    if (chat.chat_id === to) return
    yield* settings.setMoved(chat.dm, chat.user_id, to)
    chat.chat_id = to
    yield* Effect.logInfo("a group has a new chat id; user_id in config.json may stay as it is", { dm: chat.dm })
  })
)

/** Gives each chat the id that it has now. */
export const findMoved = Effect.fnUntraced(function* (chats: ReadonlyArray<Chat>) {
  const settings = yield* ChatSettings
  for (const chat of chats) chat.chat_id = (yield* settings.moved(chat.dm, chat.user_id)) ?? chat.chat_id
})

/** Follows the groups that moved, before what is written in them is read. */
export const followMoves = Effect.fnUntraced(function* (chats: ReadonlyArray<Chat>, moves: ReadonlyArray<Move>) {
  const moveChat = yield* makeMoveChat
  for (const { from, to } of moves)
    for (const chat of chats) if (chat.chat_id === from || chat.user_id === from) yield* moveChat(chat, to)
})

/** A message with the chat id of its group that config.json has. Pure. */
export const asConfigured = (chats: ReadonlyArray<Chat>, arrival: Arrival): Arrival => {
  const { group } = arrival
  const chat = group && chats.find(({ chat_id }) => chat_id === group.chat_id)
  return group === undefined || chat === undefined
    ? arrival
    : { ...arrival, group: { ...group, chat_id: chat.user_id } }
}
