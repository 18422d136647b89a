/** What the methods of the Bot API do to a bot of the Telegram double; polling lives in Telegram.ts, since it waits. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Predicate } from "effect"
import { parseJson } from "#demo/dialects/looseJson.ts"
import type { FormFile } from "./multipart.ts"
import { richFromBlocks, type RichShown, richMarkdown } from "./telegramRich.ts"

const MESSAGE_CHARS_MAX = 4096
const CAPTION_CHARS_MAX = 1024
const PHOTO_BYTES_MAX = 10 * 1024 * 1024
const UPLOAD_BYTES_MAX = 50 * 1024 * 1024
const DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
const TOAST_CHARS_MAX = 200

export type JsonObject = { readonly [key: string]: unknown }

/** The envelope of every answer. */
export type ApiReply =
  | { readonly ok: true; readonly result: unknown }
  | {
      readonly ok: false
      readonly error_code: number
      readonly description: string
      readonly parameters?: { readonly retry_after?: number; readonly migrate_to_chat_id?: number }
    }

/** A message that the bot sent. */
export interface SentMessage {
  readonly message_id: number
  readonly date: number
  readonly chat: { readonly id: number; readonly type: "private"; readonly first_name: string }
  readonly text?: string
  readonly caption?: string
  readonly reply_markup?: unknown
  /** What a rich message shows. */
  readonly rich_shown?: RichShown
  readonly [key: string]: unknown
}

interface StoredFile {
  readonly file_id: string
  readonly file_path: string
  readonly bytes: Uint8Array
}

export interface BotState {
  readonly id: number
  readonly messages: Map<number, SentMessage>
  readonly files: Map<string, StoredFile>
  readonly callbacks: Set<string>
  /** Whether its private chats have topics; a group is a forum if its id ends with 9. */
  has_topics: boolean
  /** The topics that it made, by their ids, with their names; `closed` ones take no messages of the bot. */
  readonly topics: Map<number, { readonly chat_id: number; readonly name: string; readonly closed: boolean }>
  /** Topics that were deleted. */
  readonly deleted_topics: Set<number>
  /** Whether it may manage the topics of its groups, which lets it write into closed ones, too. */
  manages_topics: boolean
  /** The chat of each message, of people and of the bot. */
  readonly places: Map<number, number>
  /** The bot's reaction to each message. */
  readonly reactions: Map<number, ReadonlyArray<string>>
  /** The menu of each scope, as its JSON text. */
  readonly commands: Map<string, unknown>
  /** Where a server with `--local` keeps the files of users. */
  local_folder: string | undefined
  message_id_next: number
  file_id_next: number
}

/** A call of a method: parameters from JSON, query or form, with the uploaded files. */
export interface ApiCall {
  readonly parameters: JsonObject
  readonly files: Readonly<Record<string, FormFile>>
  readonly now_ms: number
}

export const succeed = (result: unknown): ApiReply => ({ ok: true, result })

export const refuse = (error_code: number, description: string): ApiReply => ({ ok: false, error_code, description })

export const badRequest = (reason: string): ApiReply => refuse(400, `Bad Request: ${reason}`)

export const textParameter = (parameters: JsonObject, key: string): string => {
  const value = parameters[key]
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : ""
}

/** Keeps bytes under a new file id, as an upload or a user's message does; with `--local` on disk, below the bot's token. */
export const storeFile = (bot: BotState, bytes: Uint8Array, name: string, token = ""): JsonObject => {
  const file_id = `file-${bot.id}-${bot.file_id_next++}`
  const below = `documents/${file_id}_${name}`
  const file_path = bot.local_folder === undefined ? below : join(bot.local_folder, token, below)
  if (bot.local_folder !== undefined) {
    mkdirSync(dirname(file_path), { recursive: true })
    writeFileSync(file_path, bytes)
  }
  bot.files.set(file_id, { file_id, file_path, bytes })
  return { file_id, file_unique_id: `unique-${file_id}`, file_size: bytes.length, file_name: name }
}

const TAGS = new Set(["a", "b", "blockquote", "code", "del", "em", "i", "ins", "pre", "s", "strong", "tg-spoiler", "u"])

/** The visible text of HTML markup, or `undefined` where Telegram cannot parse it. */
const visible = (html: string): string | undefined => {
  const open: Array<string> = []
  for (const [, closing, name] of html.matchAll(/<(\/?)([a-z-]+)[^<>]*>/giu)) {
    const tag = name?.toLowerCase() ?? ""
    if (!TAGS.has(tag)) return undefined
    if (closing === "") open.push(tag)
    else if (open.pop() !== tag) return undefined
  }
  const text = html.replaceAll(/<\/?[a-z-]+[^<>]*>/giu, "")
  if (open.length > 0 || text.includes("<")) return undefined
  return text.replaceAll(/&(?:lt|gt|amp|quot|#\d+|#x[0-9a-f]+);/giu, "?")
}

/** The reason to refuse a text, by its length in UTF-16 units and its markup; `undefined` when it is fine. */
const textProblem = (text: string, parse_mode: unknown, chars_max: number, long: string): ApiReply | undefined => {
  if (parse_mode !== undefined && parse_mode !== "HTML") return badRequest("unsupported parse_mode")
  const shown = parse_mode === undefined ? text : visible(text)
  if (shown === undefined) return badRequest("can't parse entities")
  return shown.length > chars_max ? badRequest(long) : undefined
}

const keep = (bot: BotState, { now_ms, parameters }: ApiCall, content: JsonObject): ApiReply => {
  const message: SentMessage = {
    message_id: bot.message_id_next++,
    date: Math.floor(now_ms / 1000),
    from: { id: bot.id, is_bot: true, first_name: "Bot", username: "double_bot" },
    chat: { id: Number(parameters["chat_id"]), type: "private", first_name: "User" },
    ...content
  }
  bot.messages.set(message.message_id, message)
  bot.places.set(message.message_id, message.chat.id)
  return succeed(message)
}

const markup = ({ reply_markup }: JsonObject): JsonObject =>
  reply_markup === undefined
    ? {}
    : { reply_markup: typeof reply_markup === "string" ? parseJson(reply_markup) : reply_markup }

const STYLES = new Set(["danger", "success", "primary"])

const isButton = (one: unknown): boolean => {
  if (!Predicate.isObject(one)) return false
  const { callback_data, style, text } = one
  if (typeof text !== "string" || text.trim() === "" || typeof callback_data !== "string") return false
  const bytes = Buffer.byteLength(callback_data)
  return bytes > 0 && bytes <= 64 && (style === undefined || (typeof style === "string" && STYLES.has(style)))
}

/** The refusal of a keyboard that Telegram would not take. */
const keyboardProblem = (parameters: JsonObject): ApiReply | undefined => {
  const { reply_markup } = markup(parameters) as { readonly reply_markup?: unknown }
  if (reply_markup === undefined || !Predicate.hasProperty(reply_markup, "inline_keyboard")) return undefined
  const rows = reply_markup.inline_keyboard
  const isFine =
    Array.isArray(rows) && rows.every((row) => Array.isArray(row) && row.length <= 8 && row.every(isButton))
  return isFine ? undefined : badRequest("BUTTON_DATA_INVALID")
}

const ENTITY_TYPES = new Set(
  `bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre text_link text_mention custom_emoji`.split(
    " "
  )
)

const splitsPair = (text: string, at: number) => /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/u.test(text.slice(at - 1, at + 1))

/** The problem of one entity of a text, or undefined. */
const entityProblem = (text: string, entity: unknown): string | undefined => {
  const { length, offset, type, url } = (entity ?? {}) as JsonObject
  if (typeof type !== "string" || !ENTITY_TYPES.has(type)) return "can't parse entities: unsupported type"
  if (typeof offset !== "number" || typeof length !== "number" || offset < 0 || length <= 0)
    return "can't parse entities: invalid range"
  if (offset + length > text.length) return "can't parse entities: range is outside of the text"
  if (splitsPair(text, offset) || splitsPair(text, offset + length))
    return "can't parse entities: range cuts a character"
  return type === "text_link" && !(typeof url === "string" && /^(?:https?|tg|mailto):/u.test(url))
    ? "can't parse entities: url is invalid"
    : undefined
}

interface Range {
  readonly type: string
  readonly offset: number
  readonly length: number
}

/** Entities that cross, or lie in or around code. */
const crossing = (entities: ReadonlyArray<Range>): boolean =>
  entities.some((a, at) =>
    entities.slice(at + 1).some((b) => {
      const [first, second] = a.offset <= b.offset ? [a, b] : [b, a]
      if (second.offset >= first.offset + first.length) return false
      const crosses = second.offset > first.offset && second.offset + second.length > first.offset + first.length
      const code = [a, b].some(({ type }) => type === "code" || type === "pre")
      return crosses || (code && ![a, b].some(({ type }) => type === "blockquote"))
    })
  )

/** The reason to refuse the entities of a text; undefined if there is none. */
const entitiesProblem = (text: string, parameters: JsonObject): ApiReply | undefined => {
  const given = parameters["entities"]
  if (given === undefined) return undefined
  const entities: unknown = typeof given === "string" ? parseJson(given) : given
  if (!Array.isArray(entities)) return badRequest("can't parse entities")
  if (parameters["parse_mode"] !== undefined) return badRequest("entities and parse_mode exclude each other")
  const problem = entities.map((entity) => entityProblem(text, entity)).find((one) => one !== undefined)
  if (problem !== undefined) return badRequest(problem)
  return crossing(entities as ReadonlyArray<Range>) ? badRequest("can't parse entities: they cross") : undefined
}

const whole = (value: unknown) => Number.isSafeInteger(Number(value)) && Number(value) > 0

/** What a message carries of its place: the topic, which must exist, and the message that it quotes, which may be gone if so allowed. */
const placed = (bot: BotState, { parameters }: ApiCall): ApiReply | JsonObject => {
  const { message_thread_id, reply_parameters } = parameters
  const thread_id = Number(message_thread_id)
  if (message_thread_id !== undefined && (!whole(message_thread_id) || bot.deleted_topics.has(thread_id)))
    return badRequest("message thread not found")
  if (bot.topics.get(thread_id)?.closed === true && !bot.manages_topics) return badRequest("TOPIC_CLOSED")
  const topic = message_thread_id === undefined ? {} : { message_thread_id: Number(message_thread_id) }
  if (reply_parameters === undefined) return topic
  const reply: unknown = typeof reply_parameters === "string" ? parseJson(reply_parameters) : reply_parameters
  const { allow_sending_without_reply, message_id } = (reply ?? {}) as JsonObject
  if (!whole(message_id)) return badRequest("invalid reply_parameters")
  const known = Number(message_id) < bot.message_id_next
  if (!known && allow_sending_without_reply !== true) return badRequest("message to be replied not found")
  return known ? { ...topic, reply_to_message_id: Number(message_id) } : topic
}

const isReply = (value: ApiReply | JsonObject): value is ApiReply => typeof value["ok" as never] === "boolean"

const sendMessage = (bot: BotState, call: ApiCall): ApiReply => {
  const text = textParameter(call.parameters, "text")
  if (text.trim() === "") return badRequest("message text is empty")
  const problem =
    keyboardProblem(call.parameters) ??
    textProblem(text, call.parameters["parse_mode"], MESSAGE_CHARS_MAX, "message is too long") ??
    entitiesProblem(text, call.parameters)
  if (problem !== undefined) return problem
  const place = placed(bot, call)
  if (isReply(place)) return place
  const { entities } = call.parameters
  const marks =
    entities === undefined ? {} : { entities: typeof entities === "string" ? parseJson(entities) : entities }
  return keep(bot, call, { text, ...marks, ...place, ...markup(call.parameters) })
}

const RICH_CHARS_MAX = 32_768

const sendRichMessage = (bot: BotState, call: ApiCall): ApiReply => {
  const given = call.parameters["rich_message"]
  const rich = (typeof given === "string" ? parseJson(given) : given) as JsonObject | undefined
  const contents = ["markdown", "html", "blocks"].filter((key) => rich?.[key] !== undefined)
  if (rich === undefined || contents.length !== 1) return badRequest("rich message must have exactly one content")
  const { blocks, html, markdown } = rich
  const source = [markdown, html].find((one) => typeof one === "string")
  if (source !== undefined && (source.trim() === "" || source.length > RICH_CHARS_MAX))
    return badRequest("rich message is too long or empty")
  const rich_shown = source === undefined ? richFromBlocks(blocks) : richMarkdown(source)
  if (typeof rich_shown === "string") return badRequest(rich_shown)
  const place = placed(bot, call)
  return isReply(place) ? place : keep(bot, call, { rich_message: rich, rich_shown, ...place })
}

/** The emoji that Telegram lets people and bots react with. */
const EMOJI = new Set(
  `❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗
  🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡`.split(/\s+/u)
)

const isReaction = (one: unknown): boolean =>
  Predicate.isObject(one) && one["type"] === "emoji" && typeof one["emoji"] === "string" && EMOJI.has(one["emoji"])

const setMessageReaction = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const { chat_id, message_id, reaction } = parameters
  if (bot.places.get(Number(message_id)) !== Number(chat_id)) return badRequest("message to react not found")
  const list: unknown = typeof reaction === "string" ? parseJson(reaction) : (reaction ?? [])
  // A bot has one reaction at most.
  if (!Array.isArray(list) || list.length > 1 || !list.every(isReaction)) return badRequest("REACTION_INVALID")
  bot.reactions.set(
    Number(message_id),
    (list as ReadonlyArray<JsonObject>).map(({ emoji }) => String(emoji))
  )
  return succeed(true)
}

/** The first bytes of the pictures that Telegram can process. */
const PICTURE = /^(?:\x89PNG\r\n|\xff\xd8\xff|RIFF[^]{4}WEBP|GIF8)/u
/** Voice notes are Opus in Ogg, or MP3 or M4A. */
const VOICE = /^(?:OggS[^]{24}OpusHead|ID3|\xff[\xfb\xf3\xf2]|[^]{4}ftypM4A)/u

const MEDIA_KINDS = ["audio", "document", "photo", "video", "voice"] as const
type MediaKind = (typeof MEDIA_KINDS)[number]

/** The refusal of an upload, by its length and its first bytes. */
const uploadProblem = (kind: MediaKind, { bytes, name }: FormFile): ApiReply | undefined => {
  const head = bytes.subarray(0, 64).toString("latin1")
  if (bytes.length === 0) return badRequest("file must be non-empty")
  if (bytes.length > UPLOAD_BYTES_MAX) return refuse(413, "Request Entity Too Large")
  if (name === "" || /[\r\n;"]/u.test(name)) return badRequest("file name is invalid")
  if (kind === "photo" && bytes.length > PHOTO_BYTES_MAX) return badRequest("file is too big for a photo")
  if (kind === "photo" && !PICTURE.test(head)) return badRequest("IMAGE_PROCESS_FAILED")
  return kind === "voice" && !VOICE.test(head) ? badRequest("VOICE_MESSAGE_INVALID") : undefined
}

/** The problem of a caption, in UTF-16 units, and of its entities. */
const captionProblem = (parameters: JsonObject): ApiReply | undefined => {
  const { caption, caption_entities, parse_mode } = parameters
  if (caption !== undefined && typeof caption !== "string") return badRequest("caption must be a string")
  return (
    textProblem(caption ?? "", parse_mode, CAPTION_CHARS_MAX, "message caption is too long") ??
    entitiesProblem(caption ?? "", caption_entities === undefined ? {} : { parse_mode, entities: caption_entities })
  )
}

const captionOf = ({ caption, caption_entities }: JsonObject): JsonObject => ({
  ...(caption === undefined || caption === "" ? {} : { caption }),
  ...(caption_entities === undefined
    ? {}
    : { caption_entities: typeof caption_entities === "string" ? parseJson(caption_entities) : caption_entities })
})

/** The message part for a file that is uploaded under a name of the form or known by its id; a refusal where it is neither. */
const mediaOf = (bot: BotState, { files }: ApiCall, kind: MediaKind, given: string): ApiReply | JsonObject => {
  const upload = files[given.startsWith("attach://") ? given.slice("attach://".length) : kind]
  if (upload === undefined && !bot.files.has(given)) return badRequest("wrong file identifier")
  const problem = upload === undefined ? undefined : uploadProblem(kind, upload)
  if (problem !== undefined) return problem
  const file = upload === undefined ? { file_id: given } : storeFile(bot, upload.bytes, upload.name)
  return { [kind]: kind === "photo" ? [{ ...file, width: 1, height: 1 }] : { ...file, duration: 1 } }
}

const sendMedia =
  (kind: MediaKind) =>
  (bot: BotState, call: ApiCall): ApiReply => {
    if (!whole(Math.abs(Number(call.parameters["chat_id"])))) return badRequest("chat not found")
    const problem = captionProblem(call.parameters) ?? keyboardProblem(call.parameters)
    if (problem !== undefined) return problem
    const media = mediaOf(bot, call, kind, textParameter(call.parameters, kind))
    if (isReply(media)) return media
    const place = placed(bot, call)
    if (isReply(place)) return place
    return keep(bot, call, { ...captionOf(call.parameters), ...place, ...markup(call.parameters), ...media })
  }

const ALBUM_MIN = 2
const ALBUM_MAX = 10

/** The problem of an album's items: 2 to 10, photos with videos, else all of one kind. */
const albumProblem = (items: ReadonlyArray<JsonObject>): ApiReply | undefined => {
  if (items.length < ALBUM_MIN || items.length > ALBUM_MAX) return badRequest("wrong number of items in the album")
  const types = new Set(items.map(({ type }) => (type === "video" ? "photo" : type)))
  const [type] = types
  if (types.size > 1 || (type !== "photo" && type !== "document" && type !== "audio"))
    return badRequest("wrong type of the media in the album")
  return items.map(captionProblem).find((problem) => problem !== undefined)
}

const sendMediaGroup = (bot: BotState, call: ApiCall): ApiReply => {
  const given = call.parameters["media"]
  const items: unknown = typeof given === "string" ? parseJson(given) : given
  if (!Array.isArray(items)) return badRequest("can't parse media JSON object")
  const problem = albumProblem(items)
  if (problem !== undefined) return problem
  const total = Object.values(call.files).reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (total > UPLOAD_BYTES_MAX) return refuse(413, "Request Entity Too Large")
  const place = placed(bot, call)
  if (isReply(place)) return place
  const parts = items.map((item: JsonObject) =>
    mediaOf(bot, call, item["type"] as MediaKind, textParameter(item, "media"))
  )
  const refused = parts.find(isReply)
  if (refused !== undefined) return refused
  const media_group_id = String(bot.message_id_next)
  const sent = parts.map((part, index) =>
    keep(bot, call, { ...captionOf(items[index] as JsonObject), ...place, media_group_id, ...part })
  )
  return succeed(sent.map((reply) => (reply.ok ? reply.result : undefined)))
}

const editMessageText = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const message = bot.messages.get(Number(parameters["message_id"]))
  if (message?.chat.id !== Number(parameters["chat_id"])) return badRequest("message to edit not found")
  if (message.text === undefined) return badRequest("there is no text in the message to edit")
  const text = textParameter(parameters, "text")
  const problem =
    keyboardProblem(parameters) ?? textProblem(text, parameters["parse_mode"], MESSAGE_CHARS_MAX, "message is too long")
  if (problem !== undefined) return problem
  const { reply_markup: _old, ...rest } = message
  const edited: SentMessage = { ...rest, text, ...markup(parameters) }
  if (JSON.stringify(edited) === JSON.stringify(message)) return badRequest("message is not modified")
  bot.messages.set(edited.message_id, edited)
  return succeed(edited)
}

const editMessageReplyMarkup = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const message = bot.messages.get(Number(parameters["message_id"]))
  if (message?.chat.id !== Number(parameters["chat_id"])) return badRequest("message to edit not found")
  const { reply_markup: _old, ...rest } = message
  const edited: SentMessage = { ...rest, ...markup(parameters) }
  bot.messages.set(edited.message_id, edited)
  return succeed(edited)
}

const getFile = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const file = bot.files.get(textParameter(parameters, "file_id"))
  if (file === undefined) return badRequest("wrong file_id or the file is temporarily unavailable")
  const { bytes, file_id, file_path } = file
  if (bytes.length > DOWNLOAD_BYTES_MAX && bot.local_folder === undefined) return badRequest("file is too big")
  return succeed({ file_id, file_unique_id: `unique-${file_id}`, file_size: bytes.length, file_path })
}

const answerCallbackQuery = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  if (textParameter(parameters, "text").length > TOAST_CHARS_MAX) return badRequest("MESSAGE_TOO_LONG")
  return bot.callbacks.delete(textParameter(parameters, "callback_query_id"))
    ? succeed(true)
    : badRequest("query is too old and response timeout expired or query ID is invalid")
}

const nothing = (): ApiReply => succeed(true)

const ACTIONS = new Set(
  `typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker find_location record_video_note
  upload_video_note`.split(/\s+/u)
)

const sendChatAction = (_: BotState, { parameters }: ApiCall): ApiReply =>
  ACTIONS.has(textParameter(parameters, "action")) ? succeed(true) : badRequest("wrong parameter action in request")

const sendMessageDraft = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  if (!(Number(parameters["draft_id"]) > 0)) return badRequest("DRAFT_ID_INVALID")
  if (!(Number(parameters["chat_id"]) > 0)) return badRequest("chat not found")
  const text = textParameter(parameters, "text")
  return textProblem(text, parameters["parse_mode"], MESSAGE_CHARS_MAX, "message is too long") ?? succeed(bot.id > 0)
}

/** Every method but getUpdates and those of telegramTopics.ts and telegramMenus.ts. */
export const METHODS: Readonly<Record<string, (bot: BotState, call: ApiCall) => ApiReply>> = {
  answerCallbackQuery,
  deleteMessage: nothing,
  deleteWebhook: nothing,
  editMessageReplyMarkup,
  editMessageText,
  getFile,
  sendAudio: sendMedia("audio"),
  sendChatAction,
  sendDocument: sendMedia("document"),
  sendMediaGroup,
  sendMessage,
  sendMessageDraft,
  sendPhoto: sendMedia("photo"),
  sendRichMessage,
  sendVideo: sendMedia("video"),
  sendVoice: sendMedia("voice"),
  setMessageReaction
}
