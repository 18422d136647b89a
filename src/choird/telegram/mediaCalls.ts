/** The calls of the Bot API that upload files. */
import { Effect } from "effect"
import type { MessageEntity } from "grammy/types"
import type { MarkedText } from "./markedText.ts"
import type { MediaKind } from "#src/choird/gateway/mediaKind.ts"
import { type Call, foreign, messageIdOf, placeOf, type Target, type Upload } from "./telegramCalls.ts"
import type { TelegramFailed } from "./TelegramFailed.ts"

/** The longest upload. */
const TELEGRAM_UPLOAD_MS_MAX = 300_000

/** A file, and how Telegram shows it. */
export interface Media {
  readonly kind: MediaKind
  readonly file: Upload
}

const captioned = (caption: MarkedText | undefined) =>
  caption === undefined
    ? {}
    : {
        caption: caption.text,
        ...(caption.entities.length === 0
          ? {}
          : { caption_entities: caption.entities.map((entity) => entity as MessageEntity) })
      }

/** A method of grammY's client that uploads one file. Which options go with which kind is known here. */
type SendFile = (chat_id: string, file: never, other: object, signal: never) => Promise<unknown>

/** The methods of grammY's client that upload files. */
interface MediaClient {
  sendDocument(...parameters: Parameters<SendFile>): ReturnType<SendFile>
  sendPhoto(...parameters: Parameters<SendFile>): ReturnType<SendFile>
  sendVideo(...parameters: Parameters<SendFile>): ReturnType<SendFile>
  sendVoice(...parameters: Parameters<SendFile>): ReturnType<SendFile>
  sendAudio(...parameters: Parameters<SendFile>): ReturnType<SendFile>
  sendMediaGroup(chat_id: string, media: never, other: object, signal: never): Promise<unknown>
}
type InputFile = new (bytes: Uint8Array, name: string) => object

export interface MediaCalls {
  /** Sends a file; returns Telegram's id of the message. */
  media(to: Target, media: Media, caption?: MarkedText): Effect.Effect<string | undefined, TelegramFailed>
  /** Sends 2 to 10 files as one album: photos and videos, or sounds, or documents. */
  album(
    to: Target,
    media: ReadonlyArray<Media>,
    caption?: MarkedText
  ): Effect.Effect<string | undefined, TelegramFailed>
}

/** Telegram is not to take a document for something else by its ending. */
const AS_IT_IS = { disable_content_type_detection: true }

export const mediaCalls = (api: MediaClient, InputFile: InputFile, call: Call): MediaCalls => ({
  media: (to, { file, kind }, caption) => {
    const input = new InputFile(file.bytes, file.name) as never
    const other = { ...placeOf(to), ...captioned(caption) }
    const calls = {
      document: (signal: AbortSignal) =>
        api.sendDocument(to.chat_id, input, { ...other, ...AS_IT_IS }, foreign(signal)),
      photo: (signal: AbortSignal) => api.sendPhoto(to.chat_id, input, other, foreign(signal)),
      video: (signal: AbortSignal) =>
        api.sendVideo(to.chat_id, input, { ...other, supports_streaming: true }, foreign(signal)),
      voice: (signal: AbortSignal) => api.sendVoice(to.chat_id, input, other, foreign(signal)),
      audio: (signal: AbortSignal) => api.sendAudio(to.chat_id, input, other, foreign(signal))
    }
    const method = `send${kind[0]?.toUpperCase() ?? ""}${kind.slice(1)}`
    return Effect.map(call<unknown>(method, TELEGRAM_UPLOAD_MS_MAX, calls[kind]), messageIdOf)
  },
  album: (to, media, caption) => {
    const items = media.map(({ file, kind }, index) => ({
      type: kind,
      media: new InputFile(file.bytes, file.name),
      ...(kind === "document" ? AS_IT_IS : {}),
      ...(index === 0 ? captioned(caption) : {})
    }))
    return Effect.map(
      call<unknown>("sendMediaGroup", TELEGRAM_UPLOAD_MS_MAX, (signal) =>
        api.sendMediaGroup(to.chat_id, items as never, placeOf(to), foreign(signal))
      ),
      (sent) => (Array.isArray(sent) ? messageIdOf(sent[0]) : undefined)
    )
  }
})
