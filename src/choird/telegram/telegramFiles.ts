/** Files in Telegram's messages: what a message says of them, and their bytes. */
import { Effect, Redacted, Schema } from "effect"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { CHANNEL_TRAITS } from "#src/shared/config/channelTraits.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"
import { plainFetch } from "#src/shared/wire/plainFetch.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { bytesOf } from "#src/shared/wire/bytesOf.ts"
import { ChannelFailed } from "#src/choird/gateway/ChannelFailed.ts"
import type { IncomingFile } from "#src/choird/gateway/IncomingFile.ts"
import { readLocalFile } from "./localBotFiles.ts"
import { TelegramFailed } from "./TelegramFailed.ts"
import { fieldsOf, listOf, naturalOf, textOf } from "./telegramFields.ts"

/** Bytes that Telegram lets a bot fetch. */
export const TELEGRAM_FILE_BYTES_MAX = CHANNEL_TRAITS.telegram.file_bytes_in_max
/** The longest download. */
const TELEGRAM_FILE_MS_MAX = 60_000
/** Downloads of one file that fail before its message goes without it. */
const TELEGRAM_FILE_ATTEMPTS_MAX = 3
/** Files whose failures are counted; the oldest are forgotten. */
const TELEGRAM_FILES_COUNTED_MAX = 1000

/** Characters of a file's id, and of the name that its sender gave it. */
const FILE_ID_CHARS_MAX = 256
const FILE_NAME_CHARS_MAX = 1024

const mediaOf = (kind: IncomingFile["kind"], value: unknown, spoken = false): IncomingFile | undefined => {
  const media = fieldsOf(value)
  const file_id = textOf(media?.["file_id"])
  if (media === undefined || file_id === undefined || file_id.length > FILE_ID_CHARS_MAX) return undefined
  const seconds = naturalOf(media["duration"])
  return {
    file_id,
    kind,
    name: firstPart(textOf(media["file_name"]) ?? kind, FILE_NAME_CHARS_MAX),
    bytes: naturalOf(media["file_size"]),
    ...(seconds === undefined ? {} : { seconds }),
    ...(spoken ? { spoken } : {})
  }
}

/** The file of a message; Telegram puts at most one into each. */
export const fileOf = (message: unknown): IncomingFile | undefined => {
  const { animation, audio, document, photo, video, video_note, voice } = fieldsOf(message) ?? {}
  return (
    // The same picture in several sizes, the largest last.
    mediaOf("photo", listOf(photo).at(-1)) ??
    // An animation is also there as a document.
    mediaOf("video", animation ?? video) ??
    mediaOf("video", video_note, true) ??
    mediaOf("document", document) ??
    mediaOf("voice", voice) ??
    mediaOf("audio", audio)
  )
}

/** A path of a download below Telegram's address, or one on the disk of a server of one's own. */
const decodePath = Schema.decodeUnknownOption(
  Schema.Struct({ file_path: Schema.String.check(Schema.isPattern(/^(?:(?!\/)[\w./ -]{1,512}|\/[^\0]{1,4095})$/u)) })
)

const failed = (code: number, description: string) =>
  new TelegramFailed({ method: "getFile", code, description, retry_after_ms: null })

const tooLarge = failed(413, `it is larger than the ${TELEGRAM_FILE_BYTES_MAX / 1024 / 1024} MiB that a bot can fetch`)

/** Whether another attempt to fetch a file cannot help. */
const isFinal = ({ code }: TelegramFailed): boolean => code >= 400 && code !== 429 && code !== 500 && code !== 502

const channelFailed = (failure: TelegramFailed): ChannelFailed =>
  new ChannelFailed({
    description: failure.description,
    is_final: isFinal(failure),
    retry_after_ms: failure.retry_after_ms
  })

type GetFile = (file_id: string) => Effect.Effect<unknown, TelegramFailed>

/**
 * Makes the download of a bot. The address has the bot's token, so no error quotes it.
 *
 * @param local_files the folder of a Bot API server of one's own that offers no downloads
 */
export const makeDownload = (token: Redacted.Redacted, api_root: string, getFile: GetFile, local_files?: string) => {
  const attempts = new BoundedMap<string, number>(TELEGRAM_FILES_COUNTED_MAX)
  const get = (path: string) =>
    Effect.tryPromise({
      try: async (signal) => {
        const address = `${api_root}/file/bot${Redacted.value(token)}/${path.split("/").map(encodeURIComponent).join("/")}`
        const response = await plainFetch(address, { signal })
        if (response.ok) return { status: response.status, bytes: await bytesOf(response, TELEGRAM_FILE_BYTES_MAX) }
        await response.body?.cancel()
        return { status: response.status, bytes: undefined }
      },
      catch: () => failed(0, "the file did not arrive")
    }).pipe(
      Effect.timeoutOrElse({
        duration: TELEGRAM_FILE_MS_MAX,
        orElse: () => failed(0, "the file did not arrive in time")
      })
    )

  const download = Effect.fnUntraced(function* (file_id: string) {
    const answer = yield* Effect.mapError(getFile(file_id), (failure) =>
      /file is too big/iu.test(failure.description) ? tooLarge : failure
    )
    const found = decodePath(answer)
    if (found._tag === "None") return yield* failed(404, "Telegram gave no download path for it")
    const { file_path } = found.value
    if (file_path.startsWith("/")) {
      const read = yield* Effect.mapError(
        readLocalFile(local_files, file_path, TELEGRAM_FILE_BYTES_MAX),
        ({ reason }) => failed(404, reason)
      )
      return read ?? (yield* tooLarge)
    }
    // The address has the bot's token, and this host's addresses may have changed since the configuration was read.
    if (isInTheClear(api_root)) return yield* failed(0, inTheClearText(api_root))
    const { bytes, status } = yield* get(file_path)
    if (status !== 200) return yield* failed(status, "Telegram refused the download")
    return bytes ?? (yield* tooLarge)
  })

  /** The bytes of a file. A failure with a code of 400 or more, but 429, is final. */
  return (file: IncomingFile): Effect.Effect<Uint8Array, ChannelFailed> => {
    if ((file.bytes ?? 0) > TELEGRAM_FILE_BYTES_MAX) return Effect.fail(channelFailed(tooLarge))
    const tried = Effect.catchTag(download(file.file_id), "TelegramFailed", (failure) => {
      const count = (attempts.get(file.file_id) ?? 0) + 1
      attempts.setInPlace(file.file_id, count)
      return Effect.fail(
        count < TELEGRAM_FILE_ATTEMPTS_MAX ? failure : failed(504, `it did not arrive in ${count} attempts`)
      )
    })
    return Effect.mapError(tried, channelFailed)
  }
}
