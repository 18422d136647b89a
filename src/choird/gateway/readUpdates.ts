/** Updates of the Bot API, decoded: messages of people in private chats and groups, their taps, and a person who stops an answer. Pure. */
import { Option, Schema } from "effect"
import type { Tap } from "./CardTaps.ts"
import type { Arrival, Group } from "./route.ts"
import { fileOf } from "./telegramFiles.ts"

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

const Person = Schema.Struct({
  id: Schema.Int,
  is_bot: Schema.Literal(false),
  first_name: Schema.optionalKey(Schema.String)
})
const Message = Schema.Struct({
  message_id: Schema.optionalKey(Schema.Natural),
  message_thread_id: Schema.optionalKey(Schema.Natural),
  media_group_id: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(64))),
  chat: Schema.Struct({ id: Schema.Int, type: Schema.Literals(["private", "group", "supergroup"]) }),
  from: Person,
  text: Schema.optionalKey(Schema.String),
  caption: Schema.optionalKey(Schema.String),
  forward_origin: Schema.optionalKey(Schema.Unknown),
  via_bot: Schema.optionalKey(Schema.Unknown),
  reply_to_message: Schema.optionalKey(Schema.Unknown)
})
const decodeMessage = Schema.decodeUnknownOption(Message)

const Stopped = Schema.Struct({ chat: Schema.Struct({ id: Schema.Int, type: Schema.Literal("private") }) })
const decodeStopped = Schema.decodeUnknownOption(Stopped)

/** A message of the bot's own that a person replies to. */
const OwnMessage = Schema.Struct({
  message_id: Schema.optionalKey(Schema.Natural),
  from: Schema.Struct({ id: Schema.Int, is_bot: Schema.Literal(true) }),
  text: Schema.optionalKey(Schema.Unknown),
  forum_topic_created: Schema.optionalKey(Schema.Unknown)
})
const decodeOwn = Schema.decodeUnknownOption(OwnMessage)

/** The bot's own message that a message replies to. */
const ownIn = ({ id }: Bot, reply: unknown) => {
  const own = decodeOwn(reply)
  return Option.isSome(own) && String(own.value.from.id) === id ? own.value : undefined
}

/** The message of the bot's own that a person replies to. All messages of a topic seem to reply to the one that began it. */
const replyOn = (bot: Bot, { chat, reply_to_message }: typeof Message.Type) => {
  const { forum_topic_created, message_id } = ownIn(bot, reply_to_message) ?? {}
  return message_id === undefined || forum_topic_created !== undefined
    ? undefined
    : { chat_id: String(chat.id), message_id: String(message_id) }
}

const COMMAND_FOR = /^\/\w{1,32}(?:@(\w{1,64}))?(?:\s|$)/u

/** Whether a text of a group is for the bot: a command without another bot's name, or one that mentions it. */
const isFor = ({ name }: Bot, text: string) => {
  const command = COMMAND_FOR.exec(text)
  if (command !== null) return command[1] === undefined || command[1].toLowerCase() === name?.toLowerCase()
  return name !== undefined && new RegExp(`(?:^|\\W)@${name}(?:\\W|$)`, "iu").test(text)
}

const groupOf = (
  bot: Bot,
  { caption, chat, from, reply_to_message, text = caption }: typeof Message.Type
): Group | undefined =>
  chat.type === "private"
    ? undefined
    : {
        chat_id: String(chat.id),
        writer: from.first_name ?? String(from.id),
        addressed: ownIn(bot, reply_to_message) !== undefined || (text !== undefined && isFor(bot, text))
      }

const arrivalOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<Arrival> => {
  const found = Option.getOrUndefined(decodeMessage(content))
  // A private chat has the id of its person (E6).
  if (found === undefined || (found.chat.type === "private" && found.chat.id !== found.from.id)) return []
  const { caption, forward_origin, from, media_group_id, message_id, message_thread_id, reply_to_message, via_bot } =
    found
  const file = fileOf(content)
  const text = found.text ?? caption ?? (file === undefined ? undefined : "")
  const replied = ownIn(bot, reply_to_message)?.text
  const reply_on = replyOn(bot, found)
  const group = groupOf(bot, found)
  return [
    {
      id: `${bot.id}:${update_id}`,
      user_id: String(from.id),
      text,
      ...(file === undefined ? {} : { file }),
      ...(media_group_id === undefined ? {} : { album: media_group_id }),
      ...(typeof replied === "string" ? { replies_to: replied } : {}),
      ...(reply_on === undefined ? {} : { reply_on }),
      ...(forward_origin !== undefined || via_bot !== undefined ? { forwarded: true } : {}),
      ...(group === undefined ? {} : { group }),
      ...(message_id === undefined ? {} : { message_id }),
      ...(message_thread_id === undefined ? {} : { thread_id: message_thread_id })
    }
  ]
}

/** A message that a person edited; without its number nobody knows which. */
const editOf = (bot: Bot, update_id: number, content: unknown): ReadonlyArray<Arrival> =>
  arrivalOf(bot, update_id, content).flatMap(({ replies_to: _answered, reply_on: _on, ...arrival }) =>
    arrival.message_id === undefined ? [] : [{ ...arrival, edited: true }]
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
  return { update_id: Math.max(0, ...decoded.map(({ update_id }) => update_id)), moves, arrivals, taps }
}
