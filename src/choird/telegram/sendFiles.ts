/** A message with files: each in the way that its bytes allow, several as albums, and what does not fit a caption as texts behind them. */
import { Effect } from "effect"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import type { Chat } from "./Chat.ts"
import { makeSendUntilTaken, type Outcome } from "./sendUntilTaken.ts"
import type { MarkedText } from "./markedText.ts"
import { messageParts, TELEGRAM_TEXT_CHARS_MAX } from "./messageParts.ts"
import type { Media } from "./mediaCalls.ts"
import { albums } from "#src/choird/gateway/mediaKind.ts"
import { OutgoingFiles, type ReadyFile } from "#src/choird/gateway/OutgoingFiles.ts"
import { makeFirstTaken, makeSendPart } from "./sendPart.ts"
import type { Target } from "./telegramCalls.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { isGone, isHopeless, TelegramFailed } from "./TelegramFailed.ts"

/** UTF-16 units of a caption. */
const CAPTION_CHARS_MAX = 1024

/** A file of a message that can be sent, with its place in it. */
type Numbered = ReadyFile & { readonly index: number }

const refusal = (description: string) =>
  new TelegramFailed({ method: "choird", code: 400, description, retry_after_ms: null })

const missing = refusal("a file was changed or removed before it could be sent, or there is no room for a copy")

const mediaOf = (files: ReadonlyArray<Numbered>): Effect.Effect<ReadonlyArray<Media>> =>
  Effect.forEach(files, ({ kind, name, read }) => Effect.map(read, (bytes) => ({ kind, file: { name, bytes } })))

/** Sends the files of one message: an album where there are several, and each by itself where Telegram refuses that. */
const makeSendGroup = Effect.gen(function* () {
  const api = yield* TelegramApi
  const sendUntilTaken = yield* makeSendUntilTaken
  const outbox = yield* Outbox
  const firstTaken = yield* makeFirstTaken

  /** One file: as what it is, else as a document, else without the marks of its caption. */
  const sendOne = (chat: Chat, row: Outgoing, media: Media, caption: MarkedText | undefined) => {
    const document = { ...media, kind: "document" } as const
    return firstTaken(chat, row, [
      (to) => api.media(to, media, caption),
      ...(media.kind === "document" ? [] : [(to: Target) => api.media(to, document, caption)]),
      ...(caption === undefined || caption.entities.length === 0
        ? []
        : [(to: Target) => api.media(to, document, { text: caption.text, entities: [] })])
    ])
  }

  return Effect.fnUntraced(function* (
    chat: Chat,
    row: Outgoing,
    files: ReadonlyArray<Numbered>,
    caption: MarkedText | undefined
  ) {
    const media = yield* mediaOf(files)
    const [first, second] = media
    if (first !== undefined && second === undefined) return yield* sendOne(chat, row, first, caption)
    const together = yield* sendUntilTaken(chat, row, (to) => api.album(to, media, caption))
    if (together.refused === undefined || !isHopeless(together.refused) || isGone(together.refused)) return together
    let refused: TelegramFailed | undefined
    for (const [at, one] of media.entries()) {
      const index = files[at]?.index ?? 0
      const outcome = yield* sendOne(chat, { ...row, sent_parts: index }, one, at === 0 ? caption : undefined)
      refused = outcome.refused ?? refused
      yield* outbox.sentParts(row.outbox_id, index + 1, refused?.description)
    }
    return refused === undefined ? {} : { refused }
  })
})

/** Sends the files of a row that were not sent yet; `sent_parts` counts files, then texts. The last refusal is the row's. */
export const makeSendFiles = Effect.gen(function* () {
  const outbox = yield* Outbox
  const outgoing = yield* OutgoingFiles
  const sendGroup = yield* makeSendGroup
  const sendPart = yield* makeSendPart

  return Effect.fnUntraced(function* (chat: Chat, row: Outgoing) {
    yield* outgoing.stage(row)
    const files = yield* outgoing.ready(row)
    const sent = row.sent_parts ?? 0
    const spoken = row.form?.files?.items[0]?.speaks
    const [caption, ...texts] = spoken === undefined ? messageParts(row, CAPTION_CHARS_MAX) : []
    const open = files.flatMap((file, index) => (file === undefined || index < sent ? [] : [{ ...file, index }]))
    // A life before this one may have seen a part refused; only the row still knows.
    const before = row.failure === undefined || row.failure === null ? undefined : refusal(row.failure)
    let refused = files.some((file, index) => file === undefined && index >= sent) ? missing : before
    for (const group of albums(open)) {
      const index = group[0]?.index ?? 0
      const isFirst = index === (open[0]?.index ?? 0) && sent === 0
      const outcome: Outcome = yield* sendGroup(
        chat,
        { ...row, sent_parts: index },
        group,
        isFirst ? caption : undefined
      )
      refused = outcome.refused ?? refused
      if (outcome.refused !== undefined && isGone(outcome.refused)) return outcome
      yield* outbox.sentParts(row.outbox_id, (group.at(-1)?.index ?? 0) + 1, refused?.description)
    }
    const unheard = spoken === "part" || (spoken === "all" && refused !== undefined)
    const unread = open.length === 0 && sent === 0 && caption !== undefined ? [caption, ...texts] : texts
    const behind = unheard ? messageParts(row, TELEGRAM_TEXT_CHARS_MAX) : unread
    // Who reads the text misses nothing.
    if (spoken !== undefined) refused = undefined
    for (const [at, part] of behind.entries()) {
      const index = files.length + at
      if (index < sent) continue
      const outcome: Outcome = yield* sendPart(chat, { ...row, sent_parts: index }, part)
      refused = outcome.refused ?? refused
      yield* outbox.sentParts(row.outbox_id, index + 1, refused?.description)
    }
    return refused === undefined ? {} : { refused }
  })
})
