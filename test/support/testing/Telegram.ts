/**
 * A double of the Telegram Bot API on a real loopback socket: long polling, messages, files, buttons and faults.
 *
 * Waits follow the clock of the test. A token that {@link Telegram.bot} did not make is answered with 401.
 */
import { Clock, Deferred, Effect, Predicate, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { listen } from "#demo/offline-model/HttpListener.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { type Journal, type JournalWriter, makeJournal } from "./Journal.ts"
import { parseMultipart } from "./multipart.ts"
import { type Fault, respondWith, suffer } from "./TelegramFaults.ts"
import {
  type ApiCall,
  type ApiReply,
  type BotState,
  type JsonObject,
  METHODS,
  type SentMessage,
  refuse,
  storeFile,
  succeed
} from "./telegramMethods.ts"
import { MENU_METHODS } from "./telegramMenus.ts"
import { isForum, TOPIC_METHODS } from "./telegramTopics.ts"

const REQUEST_BYTES_MAX = 64 * 1024 * 1024
const UPDATES_MAX = 100
const POLL_SECONDS_MAX = 50

/** A call that a bot made, whatever came of it. */
interface TelegramCall {
  readonly method: string
  readonly parameters: JsonObject
  /** When it had arrived whole, by the clock of the test. */
  readonly at_ms: number
}

/** What changes a chat, as the apps of its members show it: a person's message or tap, or a call of the bot with what came of it. */
export type ChatChange =
  | { readonly by: "person"; readonly message: JsonObject }
  | { readonly by: "tap"; readonly user: number; readonly message_id: number; readonly data: string }
  | { readonly by: "bot"; readonly method: string; readonly parameters: JsonObject; readonly result: unknown }

interface UserFile {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

export interface TelegramBot {
  readonly token: string
  /** Gives a user a name, which is `User` and the number before. */
  name(user: number, first_name: string): Effect.Effect<void>
  /** Lets a user write to the bot; answers with the update id. */
  text(user: number, text: string): Effect.Effect<number>
  /** Lets a user send a file. */
  file(user: number, kind: "document" | "photo" | "voice" | "video" | "audio", file: UserFile): Effect.Effect<number>
  /** Lets a user send several files as one album; answers with the update id of the last. */
  album(user: number, files: ReadonlyArray<UserFile>, caption: string): Effect.Effect<number>
  /** The messages into which an app cuts a long text. */
  pieces(text: string): ReadonlyArray<string>
  /** Lets a user send a text of any length, which the app cuts. */
  paste(user: number, text: string): Effect.Effect<void>
  /** Lets a user send a message with this content, in the fields of the Bot API, such as those of telegramContent.ts. */
  send(user: number, content: JsonObject): Effect.Effect<number>
  /** Lets a user reply to a message of the bot, or to one that a user wrote, by its update id; with the words of it that they chose. */
  reply(user: number, to: SentMessage | number, text: string, quote?: string): Effect.Effect<number>
  /** Edits an earlier message, by its update id, to this content: Telegram reports a live place that moves so. */
  editTo(update_id: number, content: JsonObject): Effect.Effect<number>
  /** Lets a user forward a text of somebody else. */
  forward(user: number, text: string): Effect.Effect<number>
  /** Lets a user edit the text of an earlier message, by its update id. */
  edit(update_id: number, text: string): Effect.Effect<number>
  /** Lets a user press a button of a message. */
  tap(user: number, message: SentMessage, data: string): Effect.Effect<number>
  /** Deletes a topic: what is sent there is refused. */
  deleteTopic(thread_id: number): Effect.Effect<void>
  /** Lets a person close a topic, where only those who manage topics can write then. */
  closeTopic(thread_id: number): Effect.Effect<void>
  /** Takes the right to manage topics in groups from the bot. */
  readonly takeTopicRight: Effect.Effect<void>
  /** Runs the server with `--local`: files of users are on its disk in this folder, below the bot's token, and none is offered for download. */
  serveLocally(folder: string): Effect.Effect<void>
  /** Gives its private chats topics. */
  readonly switchTopicsOn: Effect.Effect<void>
  /** The topics that the bot made, by their ids. */
  readonly topics: Effect.Effect<BotState["topics"]>
  /** Lets a user write in a topic. */
  textIn(user: number, thread_id: number, text: string): Effect.Effect<number>
  /** Lets a member write in a group, or in a topic of it; a group whose id ends with 9 is a forum. */
  textInGroup(group: number, user: number, text: string, thread_id?: number): Effect.Effect<number>
  /** The bot's reaction to a message. */
  reaction(message_id: number): Effect.Effect<ReadonlyArray<string>>
  /** Queues any update, hostile ones too; the update id is added. */
  update(content: JsonObject): Effect.Effect<number>
  /** Strikes the next `times` (default 1) calls of `method`; `*` means every method but getUpdates, `download` the fetch of a file. */
  fail(method: string, fault: Fault, times?: number): Effect.Effect<void>
  /** Strikes one call of `method` after so many that succeed. */
  failAfter(method: string, fault: Fault, calls: number): Effect.Effect<void>
  /** Waits until no fault is left. */
  readonly struck: Effect.Effect<void>
  /** Ends all faults that are left. */
  readonly heal: Effect.Effect<void>
  readonly calls: Journal<TelegramCall>
  readonly sent: Journal<SentMessage>
  /** What members of its chats see happen, in order. */
  readonly changes: Journal<ChatChange>
  /** A message as it stands now, edits included. */
  message(message_id: number): Effect.Effect<SentMessage | undefined>
  /** The bytes of a file, by its id. */
  bytesOf(file_id: string): Uint8Array | undefined
  /** The menu of the last setMyCommands. */
  readonly commands: Effect.Effect<unknown>
  /** The menu that one chat has for itself. */
  commandsOf(chat_id: number): Effect.Effect<unknown>
  /** How many updates wait to be confirmed by an offset. */
  readonly pending: Effect.Effect<number>
}

export interface Telegram {
  /** What config.json calls `api_root`. */
  readonly url: string
  /** The bot with this token, such as `1000:secret`; made on first use. */
  bot(token: string): TelegramBot
}

interface Bot extends BotState {
  readonly token: string
  readonly names: Map<number, string>
  readonly calls: JournalWriter<TelegramCall>
  readonly sent: JournalWriter<SentMessage>
  readonly changes: JournalWriter<ChatChange>
  /** The messages of users, by their update ids. */
  readonly written: Map<number, JsonObject>
  /** The kinds of updates that the last poll asked for; Telegram remembers them. */
  allowed: ReadonlyArray<unknown> | undefined
  readonly faults: Array<{ readonly method: string; readonly fault: Fault | undefined; times: number }>
  updates: ReadonlyArray<JsonObject & { readonly update_id: number }>
  update_id_next: number
  album_next: number
  poll: Deferred.Deferred<ApiReply> | undefined
}

const makeBot = (token: string): Bot => ({
  token,
  id: Number(token.split(":", 1)[0]),
  names: new Map(),
  messages: new Map(),
  files: new Map(),
  callbacks: new Set(),
  has_topics: false,
  topics: new Map(),
  deleted_topics: new Set(),
  manages_topics: true,
  places: new Map(),
  reactions: new Map(),
  commands: new Map(),
  local_folder: undefined,
  message_id_next: 1,
  file_id_next: 1,
  calls: makeJournal(),
  sent: makeJournal(),
  changes: makeJournal(),
  written: new Map(),
  allowed: undefined,
  faults: [],
  updates: [],
  update_id_next: 1000,
  album_next: 1,
  poll: undefined
})

const endPoll = (bot: Bot, reply: ApiReply) => {
  const { poll } = bot
  bot.poll = undefined
  if (poll !== undefined) Deferred.doneUnsafe(poll, Effect.succeed(reply))
}

/** Long polling: an offset confirms what lies before it, and a second poller ends the first one with 409. */
const getUpdates = (bot: Bot, parameters: JsonObject): Effect.Effect<ApiReply> =>
  Effect.suspend(() => {
    endPoll(bot, refuse(409, "Conflict: terminated by other getUpdates request"))
    const { allowed_updates } = parameters
    if (Array.isArray(allowed_updates)) bot.allowed = allowed_updates
    bot.updates = bot.updates.filter((update) => isAllowed(bot, update))
    const offset = Number(parameters["offset"] ?? 0)
    const limit = Math.min(Number(parameters["limit"] ?? UPDATES_MAX), UPDATES_MAX)
    const timeout_s = Math.min(Number(parameters["timeout"] ?? 0), POLL_SECONDS_MAX)
    if (offset < 0) bot.updates = bot.updates.slice(offset)
    else bot.updates = bot.updates.filter((update) => update.update_id >= offset)
    if (bot.updates.length > 0 || timeout_s <= 0) return Effect.succeed(succeed(bot.updates.slice(0, limit)))
    const poll = Deferred.makeUnsafe<ApiReply>()
    bot.poll = poll
    return Deferred.await(poll).pipe(
      Effect.timeoutOrElse({ duration: `${timeout_s} seconds`, orElse: () => Effect.succeed(succeed([])) }),
      Effect.ensuring(
        Effect.sync(() => {
          if (bot.poll === poll) bot.poll = undefined
        })
      )
    )
  })

/** Whether the bot has asked for this kind of update. */
const isAllowed = ({ allowed }: Bot, update: JsonObject): boolean =>
  allowed === undefined || Object.keys(update).some((kind) => allowed.includes(kind))

const push = (bot: Bot, content: JsonObject): number => {
  const update_id = bot.update_id_next++
  if (!isAllowed(bot, content)) return update_id
  bot.updates = [...bot.updates, { update_id, ...content }]
  endPoll(bot, succeed(bot.updates.slice(0, UPDATES_MAX)))
  return update_id
}

const ALL_METHODS: typeof METHODS = { ...METHODS, ...TOPIC_METHODS, ...MENU_METHODS }

const run = (bot: Bot, method: string, call: ApiCall): Effect.Effect<ApiReply> =>
  Effect.suspend(() => {
    if (method === "getUpdates") return getUpdates(bot, call.parameters)
    const handler = Object.hasOwn(ALL_METHODS, method) ? ALL_METHODS[method] : undefined
    if (handler === undefined) return Effect.succeed(refuse(404, "Not Found"))
    const reply = handler(bot, call)
    if (reply.ok) bot.changes.record({ by: "bot", method, parameters: call.parameters, result: reply.result })
    const results = reply.ok && method.startsWith("send") ? [reply.result].flat() : []
    for (const result of results)
      if (Predicate.hasProperty(result, "message_id")) bot.sent.record(result as SentMessage)
    return Effect.succeed(reply)
  })

const takeFault = (bot: Bot, method: string): Fault | undefined => {
  const at = bot.faults.findIndex(
    (one) => one.method === method || (one.method === "*" && method !== "getUpdates" && method !== "download")
  )
  const found = bot.faults[at]
  if (found === undefined) return undefined
  found.times -= 1
  if (found.times <= 0) bot.faults.splice(at, 1)
  return found.fault
}

const readCall = Effect.fnUntraced(function* (query: string) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const body = Buffer.from(yield* request.arrayBuffer)
  const type = request.headers["content-type"] ?? ""
  const now_ms = yield* Clock.currentTimeMillis
  const form = type.includes("multipart") ? parseMultipart(type, body) : undefined
  const json = type.includes("json") ? parseJson(body.toString("utf8")) : undefined
  const encoded = type.includes("urlencoded") ? Object.fromEntries(new URLSearchParams(body.toString("utf8"))) : {}
  const parameters: JsonObject = {
    ...Object.fromEntries(new URLSearchParams(query)),
    ...encoded,
    ...form?.fields,
    ...(Predicate.isObject(json) ? json : {})
  }
  return { parameters, files: form?.files ?? {}, now_ms } satisfies ApiCall
})

const handle = Effect.fnUntraced(function* (bots: ReadonlyMap<string, Bot>) {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const [path = "", query = ""] = url.split("?", 2)
  const [, kind, token = "", rest = ""] = /^(\/file)?\/bot([^/]+)\/(.+)$/u.exec(path) ?? []
  const bot = bots.get(token)
  if (bot === undefined) return respondWith(refuse(401, "Unauthorized"))
  if (kind !== undefined) {
    const struck = takeFault(bot, "download")
    if (struck !== undefined) return yield* suffer(struck, Effect.succeed(refuse(404, "Not Found")))
    const file =
      bot.local_folder === undefined
        ? [...bot.files.values()].find((one) => one.file_path === decodeURIComponent(rest))
        : undefined
    return file === undefined
      ? respondWith(refuse(404, "Not Found"))
      : HttpServerResponse.uint8Array(file.bytes, { contentType: "application/octet-stream" })
  }
  const call = yield* readCall(query)
  const fault = takeFault(bot, rest)
  bot.calls.record({ method: rest, parameters: call.parameters, at_ms: call.now_ms })
  const work = run(bot, rest, call)
  return fault === undefined ? respondWith(yield* work) : yield* suffer(fault, work)
})

const nameOf = ({ names }: Bot, user: number) => names.get(user) ?? `User ${user}`
const person = (bot: Bot, user: number) => ({ id: user, is_bot: false, first_name: nameOf(bot, user) })

const fromUser = (bot: Bot, user: number, content: JsonObject): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (now_ms) => {
    const chat = { id: user, type: "private", first_name: nameOf(bot, user) }
    const message_id = bot.message_id_next++
    const message = { message_id, date: Math.floor(now_ms / 1000), chat, from: person(bot, user), ...content }
    bot.places.set(message_id, Number((message.chat as JsonObject)["id"]))
    bot.changes.record({ by: "person", message })
    const update_id = push(bot, { message })
    bot.written.set(update_id, message)
    return update_id
  })

/** The marks that Telegram itself makes: of commands, and of names with an @ before them. */
const ownEntities = (text: string): JsonObject => {
  const command = /^\/\S+/u.exec(text)?.[0]
  const names = [...text.matchAll(/(?<![\w@./])@[A-Za-z]\w{3,31}(?!\w)/gu)].filter(
    ({ index }) => index >= (command?.length ?? 0)
  )
  const entities = [
    ...(command === undefined ? [] : [{ type: "bot_command", offset: 0, length: command.length }]),
    ...names.map(({ 0: name, index }) => ({ type: "mention", offset: index, length: name.length }))
  ]
  return entities.length === 0 ? {} : { entities }
}

const TEXT_CHARS_MAX = 4096
const ALBUM_FILES_MAX = 10

/** Telegram takes no longer text of a person, and none with blanks around it. */
const textContent = (text: string): JsonObject => {
  if (text.length > TEXT_CHARS_MAX || text.trim() !== text || text === "")
    throw new Error("no app sends such a text: use paste")
  return { text, ...ownEntities(text) }
}

/** The pieces of a text, as an app cuts it: at the last blank, or within a word that is too long. */
const cutByApp = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let rest = text.trim()
  while (rest.length > TEXT_CHARS_MAX) {
    const blank = Math.max(rest.lastIndexOf(" ", TEXT_CHARS_MAX), rest.lastIndexOf("\n", TEXT_CHARS_MAX))
    const whole = /[\uD800-\uDBFF]/u.test(rest.charAt(TEXT_CHARS_MAX - 1)) ? TEXT_CHARS_MAX - 1 : TEXT_CHARS_MAX
    const at = blank > TEXT_CHARS_MAX - 300 ? blank : whole
    pieces.push(rest.slice(0, at).trim())
    rest = rest.slice(at).trim()
  }
  return [...pieces, rest]
}

const mediaContent = (bot: Bot, kind: string, { bytes, mime, name }: UserFile): JsonObject => {
  const stored = storeFile(bot, bytes, name, bot.token)
  const media = kind === "photo" ? [{ ...stored, width: 1, height: 1 }] : { ...stored, mime_type: mime, duration: 1 }
  return { [kind]: media }
}

/** An earlier message of a user with other content. */
const edited = (bot: Bot, update_id: number, content: () => JsonObject): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (now_ms) => {
    const message = bot.written.get(update_id)
    if (message === undefined) throw new Error("nobody wrote this message")
    const { entities: _old, ...rest } = message
    return push(bot, { edited_message: { ...rest, ...content(), edit_date: Math.floor(now_ms / 1000) } })
  })

/** The chosen part of a message. Apps let a person choose only what it says, word for word. */
const quoteOf = ({ caption, text }: JsonObject, quote: string): JsonObject => {
  const words = typeof text === "string" ? text : typeof caption === "string" ? caption : ""
  const position = words.indexOf(quote)
  if (position < 0) throw new Error("the message does not say this")
  return { text: quote, position, is_manual: true }
}

const handleOf = (bot: Bot): TelegramBot => ({
  token: bot.token,
  name: (user, first_name) => Effect.sync(() => void bot.names.set(user, first_name)),
  text: (user, text) => fromUser(bot, user, textContent(text)),
  file: (user, kind, file) => Effect.suspend(() => fromUser(bot, user, mediaContent(bot, kind, file))),
  album: (user, files, caption) =>
    Effect.suspend(() => {
      if (files.length < 2 || files.length > ALBUM_FILES_MAX) throw new Error("an album has two to ten files")
      const media_group_id = String(bot.album_next++)
      const contents = files.map((file, index) => ({
        ...mediaContent(bot, "photo", file),
        media_group_id,
        ...(index === 0 && caption !== "" ? { caption } : {})
      }))
      return Effect.map(
        Effect.forEach(contents, (content) => fromUser(bot, user, content)),
        (ids) => ids.at(-1) ?? 0
      )
    }),
  edit: (update_id, text) => edited(bot, update_id, () => textContent(text)),
  editTo: (update_id, content) => edited(bot, update_id, () => content),
  send: (user, content) => fromUser(bot, user, content),
  reply: (user, to, text, quote) =>
    Effect.suspend(() => {
      const message = typeof to === "number" ? bot.written.get(to) : to
      if (message === undefined) throw new Error("nobody wrote this message")
      // A message in a message has no further replies in it, and none of what the double alone keeps.
      const { external_reply: _far, quote: _part, reply_to_message: _near, reply_to_message_id: _id, ...own } = message
      return fromUser(bot, user, {
        ...textContent(text),
        reply_to_message: own,
        ...(quote === undefined ? {} : { quote: quoteOf(message, quote) })
      })
    }),
  pieces: cutByApp,
  paste: (user, text) =>
    Effect.forEach(cutByApp(text), (piece) => fromUser(bot, user, textContent(piece)), { discard: true }),
  forward: (user, text) =>
    fromUser(bot, user, {
      text,
      forward_origin: { type: "hidden_user", sender_user_name: "Somebody", date: 0 }
    }),
  tap: (user, message, data) =>
    Effect.sync(() => {
      const id = String(bot.update_id_next)
      bot.callbacks.add(id)
      bot.changes.record({ by: "tap", user, message_id: message.message_id, data })
      return push(bot, { callback_query: { id, from: person(bot, user), chat_instance: "1", message, data } })
    }),
  serveLocally: (folder) => Effect.sync(() => void (bot.local_folder = folder)),
  switchTopicsOn: Effect.sync(() => void (bot.has_topics = true)),
  topics: Effect.sync(() => new Map(bot.topics)),
  textIn: (user, thread_id, text) =>
    fromUser(bot, user, { ...textContent(text), message_thread_id: thread_id, is_topic_message: true }),
  textInGroup: (group, user, text, thread_id) =>
    fromUser(bot, user, {
      ...textContent(text),
      chat: {
        id: group,
        type: "supergroup",
        title: bot.names.get(group) ?? "Group",
        ...(isForum(bot, group) ? { is_forum: true } : {})
      },
      ...(thread_id === undefined ? {} : { message_thread_id: thread_id, is_topic_message: true })
    }),
  deleteTopic: (thread_id) => Effect.sync(() => void bot.deleted_topics.add(thread_id)),
  closeTopic: (thread_id) =>
    Effect.sync(() => {
      const topic = bot.topics.get(thread_id)
      if (topic === undefined) throw new Error("the bot made no such topic")
      bot.topics.set(thread_id, { ...topic, closed: true })
    }),
  takeTopicRight: Effect.sync(() => void (bot.manages_topics = false)),
  reaction: (message_id) => Effect.sync(() => bot.reactions.get(message_id) ?? []),
  update: (content) => Effect.sync(() => push(bot, content)),
  fail: (method, fault, times = 1) => Effect.sync(() => void bot.faults.push({ method, fault, times })),
  failAfter: (method, fault, calls) =>
    Effect.sync(() => {
      if (calls > 0) bot.faults.push({ method, fault: undefined, times: calls })
      bot.faults.push({ method, fault, times: 1 })
    }),
  struck: Effect.asVoid(Effect.repeat(Effect.yieldNow, { until: () => Effect.sync(() => bot.faults.length === 0) })),
  heal: Effect.sync(() => void bot.faults.splice(0)),
  calls: bot.calls.journal,
  sent: bot.sent.journal,
  changes: bot.changes.journal,
  bytesOf: (file_id) => bot.files.get(file_id)?.bytes,
  message: (message_id) => Effect.sync(() => bot.messages.get(message_id)),
  commands: Effect.sync(() => bot.commands.get("default") ?? []),
  commandsOf: (chat_id) => Effect.sync(() => bot.commands.get(`chat ${chat_id}`)),
  pending: Effect.sync(() => bot.updates.length)
})

/** Starts the double on a free loopback port; it ends with the scope. */
export const makeTelegram: Effect.Effect<Telegram, never, Scope.Scope> = Effect.gen(function* () {
  const bots = new Map<string, Bot>()
  const address = { host: "127.0.0.1", port: 0, body_bytes_max: REQUEST_BYTES_MAX }
  const url = yield* Effect.orDie(
    listen(
      Effect.suspend(() => handle(bots)),
      address
    )
  )
  return {
    url,
    bot: (token) => {
      const bot = bots.get(token) ?? makeBot(token)
      bots.set(token, bot)
      return handleOf(bot)
    }
  }
})
