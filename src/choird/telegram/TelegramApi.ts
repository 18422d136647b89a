/** The few methods of the Bot API that choird calls. Answers are checked here, and no error ever holds the bot's token. */
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { MessageEntity } from "grammy/types"
import type { OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import type { Entity } from "./markedText.ts"
import { type MediaCalls, mediaCalls } from "./mediaCalls.ts"
import type { RichBlock } from "./richBlocks.ts"
import { TelegramFailed } from "./TelegramFailed.ts"
import { type Call, foreign, messageIdOf, placeOf, type Target, type Upload } from "./telegramCalls.ts"
import type { ChannelFailed } from "#src/choird/gateway/ChannelFailed.ts"
import type { IncomingFile } from "#src/choird/gateway/IncomingFile.ts"
import { makeDownload } from "./telegramFiles.ts"
import type { menuOf } from "#src/choird/chatcommands/readCommand.ts"
import { topicsOf } from "./topicCalls.ts"
import { ALLOWED_UPDATES, type Batch, readUpdates } from "./readUpdates.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { type PlainInit, plainFetch } from "#src/shared/wire/plainFetch.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"

type Menu = ReturnType<typeof menuOf>
/** The emoji that the bot reacts with. */
export type Reaction = "👀"

/** The time that Telegram may hold a poll open, in seconds. */
const TELEGRAM_POLL_SECONDS = 30
/** A poll without an answer for this long is given up and started again (R44). */
const TELEGRAM_STALL_MS_MAX = 90_000
/** The longest call that sends a message or a menu, answer included. */
const TELEGRAM_CALL_MS_MAX = 30_000
/** Characters of the words that answer a tap. */
const TELEGRAM_TOAST_CHARS_MAX = 200
/** The largest answer of the Bot API; a hundred updates of the longest messages are far smaller. */
const TELEGRAM_REPLY_BYTES_MAX = 8 * 1024 * 1024

/** The marks of a text and the buttons below it. */
export interface Extras {
  readonly entities?: ReadonlyArray<Entity>
  readonly buttons?: OutboxForm["buttons"]
}

export class TelegramApi extends Context.Service<
  TelegramApi,
  {
    /** Waits up to TELEGRAM_POLL_SECONDS for updates from this id on; `undefined` means all that were never confirmed. */
    updates(from: number | undefined): Effect.Effect<Batch | undefined, TelegramFailed>
    /** The bot's name at Telegram, without the @. */
    readonly name: Effect.Effect<string, TelegramFailed>
    /** Sends a text of at most 4096 UTF-16 units as it is, with its marks; nothing in it is parsed. Returns Telegram's id of the message. */
    send(to: Target, text: string, extras?: Extras): Effect.Effect<string | undefined, TelegramFailed>
    /** Sends blocks that Telegram lays out, with tables; nothing in their texts is parsed. Returns Telegram's id of the message. */
    sendRich(to: Target, blocks: ReadonlyArray<RichBlock>): Effect.Effect<string | undefined, TelegramFailed>
    /** Replaces the text of a message of the bot's own, whose buttons go. */
    edit(chat_id: string, message_id: string, text: string): Effect.Effect<void, TelegramFailed>
    /** Takes the buttons off a message of the bot's own. */
    dropButtons(chat_id: string, message_id: string): Effect.Effect<void, TelegramFailed>
    /** Sends a file as it is; returns Telegram's id of the message. */
    document(to: Target, file: Upload, caption?: string): Effect.Effect<string | undefined, TelegramFailed>
    /** Sends a file; returns Telegram's id of the message. */
    readonly media: MediaCalls["media"]
    /** Sends 2 to 10 files as one album: photos and videos, or sounds, or documents. */
    readonly album: MediaCalls["album"]
    /** The bytes of a file that a person sent. */
    download(file: IncomingFile): Effect.Effect<Uint8Array, ChannelFailed>
    /** Ends the wait that a tap shows, with words. */
    answerTap(callback_id: string, text: string, loud: boolean): Effect.Effect<void, TelegramFailed>
    /** Whether a chat has topics: a private one where the bot has them switched on, a group that is a forum. */
    hasTopics(chat_id: string): Effect.Effect<boolean, TelegramFailed>
    /** Makes a topic; returns its id. */
    createTopic(chat_id: string, name: string): Effect.Effect<number, TelegramFailed>
    /** Closes a topic of a group; in a private chat, where none can be closed, its name gets a mark. */
    closeTopic(chat_id: string, thread_id: number, name: string): Effect.Effect<void, TelegramFailed>
    /** Shows that the bot is typing, for five seconds or until its next message. */
    typing(chat_id: string): Effect.Effect<void, TelegramFailed>
    /** Shows a text that is still being written, for half a minute or until the next message. Drafts with the same id are one that grows. */
    draft(chat_id: string, draft_id: number, text: string, thread_id?: number): Effect.Effect<void, TelegramFailed>
    /** Reacts to a message with one emoji of Telegram's list, or takes the reaction away. */
    react(chat_id: string, message_id: number, emoji: Reaction | undefined): Effect.Effect<void, TelegramFailed>
    /** Sets the menu of all chats, or of one, if Telegram shows a different one there (E6). `undefined` takes a chat's own menu away. */
    menu(commands: Menu | undefined, chat_id?: string): Effect.Effect<void, TelegramFailed>
  }
>()("choir/choird/TelegramApi") {
  /** @param local_files the folder of the files of a Bot API server of one's own that runs with `--local` */
  static readonly layer = (token: Redacted.Redacted, api_root: string, local_files?: string) =>
    Layer.effect(TelegramApi, make(token, api_root, local_files))
}

/** The id of a bot is the public part of its token; it keeps the ids of two bots behind one gateway apart. */
const botId = (token: Redacted.Redacted) => /^\d{1,20}/u.exec(Redacted.value(token))?.[0] ?? "bot"

const DESCRIPTION_CHARS_MAX = 200

const Refusal = Schema.Struct({
  error_code: Schema.Int,
  description: Schema.String,
  parameters: Schema.optionalKey(
    Schema.Struct({
      retry_after: Schema.optionalKey(Schema.Natural),
      migrate_to_chat_id: Schema.optionalKey(Schema.Int)
    })
  )
})
const decodeRefusal = Schema.decodeUnknownOption(Refusal)

/** A client error may hold the address of the call and with it the token; only the API's own words are kept. */
const failureOf = (method: string, token: Redacted.Redacted, error: unknown) => {
  const refusal = decodeRefusal(error)
  if (refusal._tag === "None")
    return new TelegramFailed({
      method,
      code: 0,
      description: "no usable answer",
      retry_after_ms: null
    })
  const { description, error_code, parameters } = refusal.value
  const retry_after = parameters?.retry_after
  return new TelegramFailed({
    method,
    code: error_code,
    description: description.replaceAll(Redacted.value(token), "<token>").slice(0, DESCRIPTION_CHARS_MAX),
    retry_after_ms: retry_after === undefined ? null : retry_after * 1000,
    ...(parameters?.migrate_to_chat_id === undefined ? {} : { migrated_to: String(parameters.migrate_to_chat_id) })
  })
}

const notTheApi = (method: string) =>
  Effect.fail(
    new TelegramFailed({
      method,
      code: 0,
      description: "the answer is not from the Bot API",
      retry_after_ms: null
    })
  )

const decodeMe = Schema.decodeUnknownOption(
  Schema.Struct({ username: Schema.String.check(Schema.isPattern(/^\w{1,64}$/u)) })
)

const decodeMenu = Schema.decodeUnknownOption(
  Schema.Array(Schema.Struct({ command: Schema.String, description: Schema.String }))
)

/** True if Telegram's answer is this menu. */
const isMenu = (shown: unknown, commands: Menu = []): boolean => {
  const decoded = decodeMenu(shown)
  return (
    decoded._tag === "Some" &&
    decoded.value.length === commands.length &&
    decoded.value.every(
      ({ command, description }, index) =>
        command === commands[index]?.command && description === commands[index]?.description
    )
  )
}

const keyboard = (buttons: OutboxForm["buttons"]) =>
  buttons === undefined
    ? {}
    : {
        reply_markup: {
          inline_keyboard: buttons.map((row) =>
            row.map(({ data, style, text }) => ({
              text,
              callback_data: data,
              ...(style === undefined ? {} : { style })
            }))
          )
        }
      }

const NO_PREVIEW = { link_preview_options: { is_disabled: true } } as const

/** The methods that send messages to a chat, edit them and answer taps. */
type Client = InstanceType<(typeof import("grammy"))["Api"]>

const messagesOf = (api: Client, call: Call) =>
  ({
    send: (to, text, { buttons, entities = [] } = {}) =>
      Effect.map(
        call("sendMessage", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.sendMessage(
            to.chat_id,
            text,
            {
              ...placeOf(to),
              ...(entities.length === 0 ? {} : { entities: entities.map((entity) => entity as MessageEntity) }),
              ...NO_PREVIEW,
              ...keyboard(buttons)
            },
            foreign(signal)
          )
        ),
        messageIdOf
      ),
    sendRich: (to, blocks) =>
      Effect.map(
        call("sendRichMessage", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.sendRichMessage(
            to.chat_id,
            // Telegram would make links of mentions, commands and numbers.
            { blocks: blocks as never, skip_entity_detection: true },
            placeOf(to),
            foreign(signal)
          )
        ),
        messageIdOf
      ),
    edit: (chat_id, message_id, text) =>
      Effect.asVoid(
        call("editMessageText", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.editMessageText(chat_id, Number(message_id), text, NO_PREVIEW, foreign(signal))
        )
      ),
    dropButtons: (chat_id, message_id) =>
      Effect.asVoid(
        call("editMessageReplyMarkup", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.editMessageReplyMarkup(chat_id, Number(message_id), {}, foreign(signal))
        )
      ),
    answerTap: (callback_id, text, loud) =>
      Effect.asVoid(
        call("answerCallbackQuery", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.answerCallbackQuery(
            callback_id,
            { text: firstPart(text, TELEGRAM_TOAST_CHARS_MAX), show_alert: loud },
            foreign(signal)
          )
        )
      )
  }) satisfies Partial<TelegramApi["Service"]>

/** The methods that show what the agent does, without a message. */
const signsOf = (api: Client, call: Call) =>
  ({
    typing: (chat_id) =>
      Effect.asVoid(
        call("sendChatAction", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.sendChatAction(chat_id, "typing", {}, foreign(signal))
        )
      ),
    draft: (chat_id, draft_id, text, thread_id) =>
      Effect.asVoid(
        call("sendMessageDraft", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.sendMessageDraft(
            Number(chat_id),
            draft_id,
            text,
            { can_stop: true, ...(thread_id === undefined ? {} : { message_thread_id: thread_id }) },
            foreign(signal)
          )
        )
      ),
    react: (chat_id, message_id, emoji) =>
      Effect.asVoid(
        call("setMessageReaction", TELEGRAM_CALL_MS_MAX, (signal) =>
          api.setMessageReaction(
            chat_id,
            message_id,
            emoji === undefined ? [] : [{ type: "emoji", emoji }],
            {},
            foreign(signal)
          )
        )
      )
  }) satisfies Partial<TelegramApi["Service"]>

/** The method that sets the menu of commands. */
const menusOf = (api: Client, call: Call) =>
  ({
    menu: Effect.fnUntraced(function* (commands, chat_id) {
      const options = chat_id === undefined ? {} : { scope: { type: "chat" as const, chat_id: Number(chat_id) } }
      const shown: unknown = yield* call("getMyCommands", TELEGRAM_CALL_MS_MAX, (signal) =>
        api.getMyCommands(options, foreign(signal))
      )
      if (isMenu(shown, commands)) return
      yield* commands === undefined
        ? call("deleteMyCommands", TELEGRAM_CALL_MS_MAX, (signal) => api.deleteMyCommands(options, foreign(signal)))
        : call("setMyCommands", TELEGRAM_CALL_MS_MAX, (signal) =>
            api.setMyCommands([...commands], options, foreign(signal))
          )
    })
  }) satisfies Partial<TelegramApi["Service"]>

const make = Effect.fnUntraced(function* (token: Redacted.Redacted, api_root: string, local_files?: string) {
  // Loaded only if a bot is configured, since it would be a large part of choird.
  const { Api, InputFile } = yield* Effect.promise(() => import("grammy"))
  const api = new Api(Redacted.value(token), {
    apiRoot: api_root.replace(/\/+$/u, ""),
    fetch: (url: string, init: PlainInit) => plainFetch(url, { ...init, bytes_max: TELEGRAM_REPLY_BYTES_MAX })
  })
  const bot_id = botId(token)
  let name: string | undefined
  const call = <A>(method: string, ms_max: number, run: (signal: AbortSignal) => Promise<A>) =>
    Effect.suspend(() =>
      isInTheClear(api_root)
        ? new TelegramFailed({ method, code: 0, description: inTheClearText(api_root), retry_after_ms: null })
        : Effect.tryPromise({ try: run, catch: (error) => failureOf(method, token, error) })
    ).pipe(
      Effect.timeoutOrElse({
        duration: ms_max,
        orElse: () => {
          const description = `no answer within ${ms_max / 1000} s`
          return new TelegramFailed({ method, code: 0, description, retry_after_ms: null })
        }
      })
    )
  const media = mediaCalls(api, InputFile, call)
  return TelegramApi.of({
    updates: Effect.fnUntraced(function* (from) {
      const options = { timeout: TELEGRAM_POLL_SECONDS, allowed_updates: ALLOWED_UPDATES }
      const got: unknown = yield* call("getUpdates", TELEGRAM_STALL_MS_MAX, (signal) =>
        api.getUpdates(from === undefined ? options : { ...options, offset: from }, foreign(signal))
      )
      if (Array.isArray(got) && got.length === 0) return undefined
      const batch = readUpdates({ id: bot_id, name }, got)
      if (batch !== undefined) return batch
      return yield* notTheApi("getUpdates")
    }),
    name: Effect.flatMap(
      call("getMe", TELEGRAM_CALL_MS_MAX, (signal) => api.getMe(foreign(signal))),
      (me: unknown) =>
        Option.match(decodeMe(me), {
          onNone: () => notTheApi("getMe"),
          onSome: ({ username }) => Effect.sync(() => (name = username))
        })
    ),
    ...messagesOf(api, call),
    ...media,
    document: (to, file, caption) =>
      media.media(to, { kind: "document", file }, caption === undefined ? undefined : { text: caption, entities: [] }),
    download: makeDownload(
      token,
      api_root.replace(/\/+$/u, ""),
      (file_id) => call("getFile", TELEGRAM_CALL_MS_MAX, (signal) => api.getFile(file_id, foreign(signal))),
      local_files
    ),
    ...topicsOf(api, call),
    ...signsOf(api, call),
    ...menusOf(api, call)
  })
})
