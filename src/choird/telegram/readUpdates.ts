/** Updates of the Bot API, decoded: messages of people in private chats and groups, their taps, and a person who stops an answer. Pure. */
import { Option, Schema } from "effect"
import type { Tap } from "#src/choird/chatcommands/CardTaps.ts"
import type { Arrival, Group } from "#src/choird/gateway/Arrival.ts"
import { SLASH } from "#src/choird/queues/chatText.ts"
import { type Fields, fieldsOf, listOf, naturalOf, textOf, timeOf } from "./telegramFields.ts"
import { fileOf } from "./telegramFiles.ts"
import { isService, itemOf } from "./telegramItems.ts"
import { originOf, quotedOf, viaOf, wordsOf } from "./telegramQuotes.ts"

/** The kinds of updates that choird reads; sent with every poll, since Telegram remembers the last list. */
export const ALLOWED_UPDATES = ["message", "edited_message", "callback_query", "stopped_message_generation"] as const

/** A bot by its id, and by its name once that is known. */
export interface Bot {
  readonly id: string
  readonly name: string | undefined
}

/** A group that became a supergroup, by the ids before and after. */
export interface Move {
  readonly from: string
  readonly to: string
}

/** Updates up to an id. */
export interface Batch {
  readonly update_id: number
  readonly moves: ReadonlyArray<Move>
  readonly arrivals: ReadonlyArray<Arrival>
  readonly taps: ReadonlyArray<TelegramTap>
}

/** A tap with what its answer needs: the id of the callback. */
export interface TelegramTap extends Tap {
  readonly callback_id: string
}

const Update = Schema.Struct({
  update_id: Schema.Natural,
  message: Schema.optionalKey(Schema.Unknown),
  edited_message: Schema.optionalKey(Schema.Unknown),
  callback_query: Schema.optionalKey(Schema.Unknown),
  stopped_message_generation: Schema.optionalKey(Schema.Unknown)
})
const decodeUpdates = Schema.decodeUnknownOption(Schema.Array(Update))
/** Characters of a button's data; Telegram allows 64 bytes. */
const CALLBACK_CHARS_MAX = 64

/** The writer of a message and its chat, which have to be right; everything else of it is read by itself. */
const Message = Schema.Struct({
  chat: Schema.Struct({ id: Schema.Int, type: Schema.Literals(["private", "group", "supergroup"]) }),
  from: Schema.Struct({ id: Schema.Int, is_bot: Schema.Boolean })
})
const decodeMessage = Schema.decodeUnknownOption(Message)
/** Characters of the name of an album. */
const ALBUM_CHARS_MAX = 64

const Stopped = Schema.Struct({ chat: Schema.Struct({ id: Schema.Int, type: Schema.Literal("private") }) })
const decodeStopped = Schema.decodeUnknownOption(Stopped)

/** The bot's own message that a message replies to. */
const ownIn = ({ id }: Bot, reply: unknown): Fields | undefined => {
  const found = fieldsOf(reply)
  const from = fieldsOf(found?.["from"])
  return from?.["is_bot"] === true && String(from["id"]) === id ? found : undefined
}

/** The message of the bot's own that a person replies to. All messages of a topic seem to reply to the one that began it. */
const replyOn = (bot: Bot, chat_id: number, reply: unknown) => {
  const own = ownIn(bot, reply)
  const message_id = naturalOf(own?.["message_id"])
  return message_id === undefined || own?.["forum_topic_created"] !== undefined
    ? undefined
    : { chat_id: String(chat_id), message_id: String(message_id) }
}

/** The accounts behind which Telegram hides an administrator who writes as the group, and somebody who writes as a channel of theirs. */
const FACELESS: ReadonlySet<number> = new Set([1_087_968_824, 136_817_688])

/** Whether a message of a group has a mention of the bot by name, or by the person list of an app. Telegram marks none in code and addresses. */
const isMentioned = ({ id, name }: Bot, text: string, entities: ReadonlyArray<Fields>): boolean =>
  entities.some(({ length, offset, type, user }) => {
    if (type === "text_mention") return String(fieldsOf(user)?.["id"]) === id
    const [from, units] = [naturalOf(offset) ?? 0, naturalOf(length) ?? 0]
    return type === "mention" && text.slice(from, from + units).toLowerCase() === `@${name?.toLowerCase()}`
  })

/** With each slash that readCommand takes. */
const COMMAND_FOR = new RegExp(String.raw`^[/\u{ff0f}${SLASH}]\w{1,32}(?:@(\w{1,64}))?(?:\s|$)`, "u")

/** Whether a message of a group is for the bot: a command without another bot's name, or one that replies to the bot or mentions it. */
const isFor = (bot: Bot, { caption, caption_entities, entities, reply_to_message, text }: Fields) => {
  const words = textOf(text) ?? textOf(caption) ?? ""
  const command = COMMAND_FOR.exec(words)
  const { name } = bot
  if (command !== null) return command[1] === undefined || command[1].toLowerCase() === name?.toLowerCase()
  if (ownIn(bot, reply_to_message) !== undefined) return true
  const marks = text === undefined ? caption_entities : entities
  // A server of one's own may mark nothing.
  if (marks !== undefined) return isMentioned(bot, words, listOf(marks))
  return name !== undefined && new RegExp(`(?:^|\\W)@${name}(?:\\W|$)`, "iu").test(words)
}

/** The name of who wrote, as the group knows them. */
const writerOf = ({ author_signature, from, sender_chat }: Fields): string | undefined => {
  const place = fieldsOf(sender_chat)
  if (place === undefined) return textOf(fieldsOf(from)?.["first_name"])
  return [place["title"], author_signature].flatMap((name) => textOf(name) ?? []).join(", ")
}

const groupOf = (bot: Bot, { chat, from }: typeof Message.Type, message: Fields): Group | undefined =>
  chat.type === "private"
    ? undefined
    : {
        chat_id: String(chat.id),
        writer: writerOf(message) ?? String(from.id),
        addressed: isFor(bot, message)
      }

/** The content of a message: its words, its file or what it shares. Another bot may have made it, or somebody else may have written it. */
const contentOf = (message: Fields, ids: Parameters<typeof originOf>[1]) => {
  const file = fileOf(message)
  const item = itemOf(message)
  const words = wordsOf(message)
  const quoted = quotedOf(message, ids)
  const origin = originOf(message["forward_origin"], ids) ?? viaOf(message["via_bot"])
  return {
    text: words === "" && file === undefined && item === undefined ? undefined : words,
    ...(file === undefined ? {} : { file }),
    ...(item === undefined ? {} : { item }),
    ...(quoted === undefined ? {} : { quoted }),
    ...(origin === undefined ? {} : { forwarded: true, origin })
  }
}

/** Whether somebody wrote as a group or a channel. They are strangers, as far as rights go. */
const isFaceless = ({ from }: typeof Message.Type, { sender_chat }: Fields): boolean =>
  FACELESS.has(from.id) && fieldsOf(sender_chat) !== undefined

const arrivalOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<Arrival> => {
  const found = Option.getOrUndefined(decodeMessage(content))
  const message = fieldsOf(content)
  // A private chat has the id of its person (E6).
  if (found === undefined || message === undefined || isService(message)) return []
  const { chat, from } = found
  if (chat.type === "private" ? from.is_bot || chat.id !== from.id : from.is_bot && !isFaceless(found, message))
    return []
  const album = textOf(message["media_group_id"])?.slice(0, ALBUM_CHARS_MAX)
  const message_id = naturalOf(message["message_id"])
  // Replies outside of topics have the number of a thread too, in which the bot cannot write.
  const thread_id = message["is_topic_message"] === true ? naturalOf(message["message_thread_id"]) : undefined
  const sent_ms = timeOf(message["date"])
  const reply_on = replyOn(bot, chat.id, message["reply_to_message"])
  const group = groupOf(bot, found, message)
  return [
    {
      id: `${bot.id}:${update_id}`,
      user_id: String(from.id),
      ...contentOf(message, { bot: bot.id, writer: from.id }),
      ...(album === undefined ? {} : { album }),
      ...(reply_on === undefined ? {} : { reply_on }),
      ...(group === undefined ? {} : { group }),
      ...(message_id === undefined ? {} : { message_id }),
      ...(thread_id === undefined ? {} : { thread_id }),
      ...(sent_ms === undefined ? {} : { sent_ms })
    }
  ]
}

/** A message that a person edited; without its number nobody knows which. Only words are edited: nobody says anything by moving. */
const editOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<Arrival> =>
  arrivalOf(bot, update_id, content).flatMap((arrival) =>
    arrival.message_id === undefined || arrival.text === undefined || arrival.item !== undefined
      ? []
      : [{ ...arrival, edited: true }]
  )

/** A person pressed the button that stops an answer: the same as the command. */
const stopOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<Arrival> =>
  Option.match(decodeStopped(content), {
    onNone: () => [],
    onSome: ({ chat }) => [{ id: `${bot.id}:${update_id}`, user_id: String(chat.id), text: "/stop" }]
  })

const decodeMove = Schema.decodeUnknownOption(
  Schema.Struct({ chat: Schema.Struct({ id: Schema.Int }), migrate_to_chat_id: Schema.Int })
)

const moveOf = (content: unknown): ReadonlyArray<Move> =>
  Option.match(decodeMove(content), {
    onNone: () => [],
    onSome: ({ chat, migrate_to_chat_id: to }) => [{ from: String(chat.id), to: String(to) }]
  })

/** A tap is by `from`, in whatever chat. A message that is too old to be shown again still has its ids. */
const decodeCallback = Schema.decodeUnknownOption(
  Schema.Struct({
    id: Schema.String.check(Schema.isMaxLength(64)),
    from: Schema.Struct({ id: Schema.Int, is_bot: Schema.Literal(false) }),
    data: Schema.String.check(Schema.isMaxLength(CALLBACK_CHARS_MAX)),
    message: Schema.optionalKey(Schema.Unknown)
  })
)
const decodeTapped = Schema.decodeUnknownOption(
  Schema.Struct({ message_id: Schema.Natural, chat: Schema.Struct({ id: Schema.Int }) })
)

const tapOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<TelegramTap> => {
  const found = Option.getOrUndefined(decodeCallback(content))
  if (found === undefined) return []
  const { data, from, id: callback_id, message } = found
  const on = Option.getOrUndefined(decodeTapped(message))
  return [
    {
      id: `${bot.id}:${update_id}`,
      user_id: String(from.id),
      data,
      callback_id,
      on: on && { chat_id: String(on.chat.id), message_id: String(on.message_id) }
    }
  ]
}

/** A part of an album that mentions the bot is for it with all of the album, whose files come one after the other. */
const withAlbum =
  (all: ReadonlyArray<Arrival>) =>
  (arrival: Arrival): Arrival => {
    const { album, group } = arrival
    if (album === undefined || group === undefined || group.addressed) return arrival
    const isMeant = all.some(
      (other) => other.album === album && other.group?.chat_id === group.chat_id && other.group.addressed
    )
    return isMeant ? { ...arrival, group: { ...group, addressed: true } } : arrival
  }

/** The batch in a list of updates; `undefined` if it cannot be decoded. A forwarded identity does not count (E6). */
export const readUpdates = (bot: Bot, updates: unknown): Batch | undefined => {
  const decoded = Option.getOrUndefined(decodeUpdates(updates))
  if (decoded === undefined) return undefined
  const arrivals = decoded.flatMap(
    ({ edited_message: edited, message, stopped_message_generation: stopped, update_id }) => [
      ...(message === undefined ? [] : arrivalOf(bot, update_id, message)),
      ...(edited === undefined ? [] : editOf(bot, update_id, edited)),
      ...(stopped === undefined ? [] : stopOf(bot, update_id, stopped))
    ]
  )
  const taps = decoded.flatMap(({ callback_query, update_id }) =>
    callback_query === undefined ? [] : tapOf(bot, update_id, callback_query)
  )
  const moves = decoded.flatMap(({ message }) => moveOf(message))
  const update_id = Math.max(0, ...decoded.map((update) => update.update_id))
  return { update_id, moves, arrivals: arrivals.map(withAlbum(arrivals)), taps }
}
