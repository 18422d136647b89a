/**
 * The pictures of a conversation, as one request shows them. Messages name them by digest, and a request has the bytes: a picture that the model
 * does not take, that is too old or whose bytes are gone becomes words, so that a conversation reads the same to every model.
 */
import type { Picture } from "#schema/Picture.ts"
import type { Model } from "#schema/Config.ts"
import type { Asked } from "./Asked.ts"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import type { Message, ToolMessage, UserMessage } from "./Conversation.ts"
import { quirksOf } from "./quirks.ts"

/** Pictures of one request, and their bytes together: the newest are shown. Anthropic takes 20 of full size and 32 MB of JSON. */
const SHOWN_PICTURES_MAX = 20
const SHOWN_PICTURES_BYTES_MAX = 12 * 1024 * 1024
/** Old pictures go several at a time, so that most requests begin like those before them. */
const STEP = 5

/** The tokens that a picture is taken for until a provider counts them: as Anthropic does, up to those of its largest pictures. */
const PIXELS_A_TOKEN = 750
const PICTURE_TOKENS_MAX = 4800

/** In place of a picture that the provider refused before. */
export const REFUSED_PICTURE = ""

/** A picture as a request carries it. */
export interface ShownPicture {
  readonly type: Picture["type"]
  readonly data: string
}

export type Pictured = UserMessage | ToolMessage

/** Whether a model is shown pictures: by its entry, or by what is known of its family. */
export const takesPictures = (model: Pick<Model, "endpoint" | "model"> & Partial<Model>): boolean =>
  model.images ?? quirksOf(model).images === "taken"

export const isPictured = (message: Message): message is Pictured =>
  (message.role === "user" || message.role === "tool") && (message.pictures ?? []).length > 0

const NONE: ReadonlyArray<Picture> = []

/** Each call asks several times about the same messages, of which there are hundreds. */
export const havePictures = weakMemoize((messages: ReadonlyArray<Message>): boolean => messages.some(isPictured))

const picturesOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Picture> =>
  havePictures(messages) ? messages.flatMap((message) => (isPictured(message) ? (message.pictures ?? []) : [])) : NONE

const fit = (pictures: ReadonlyArray<Picture>): boolean =>
  pictures.length <= SHOWN_PICTURES_MAX &&
  pictures.reduce((sum, { bytes }) => sum + bytes, 0) <= SHOWN_PICTURES_BYTES_MAX

/** How many of the oldest are not shown. */
const oldCount = (pictures: ReadonlyArray<Picture>): number => {
  if (fit(pictures)) return 0
  const all = Array.from({ length: pictures.length + 1 }, (_, count) => count)
  const ends = (count: number) => fit(pictures.slice(count))
  return all.find((count) => count % STEP === 0 && count < pictures.length && ends(count)) ?? all.find(ends) ?? 0
}

/** The pictures that a request may show, of all in its messages the newest. */
export const newestPictures = (messages: ReadonlyArray<Message>): ReadonlyArray<Picture> => {
  const pictures = picturesOf(messages)
  return pictures.slice(oldCount(pictures))
}

const tokensOf = ({ height, width }: Picture): number =>
  height === undefined || width === undefined
    ? PICTURE_TOKENS_MAX
    : Math.min(PICTURE_TOKENS_MAX, Math.ceil((width * height) / PIXELS_A_TOKEN))

/** The same of each message; of those whose pictures are too old to be shown, 0. */
export const pictureTokensOfEach = (messages: ReadonlyArray<Message>): ReadonlyArray<number> => {
  let old = oldCount(picturesOf(messages))
  return messages.map((message) => {
    const pictures = isPictured(message) ? (message.pictures ?? []) : []
    const shown = pictures.slice(Math.min(old, pictures.length))
    old -= pictures.length - shown.length
    return shown.reduce((sum, picture) => sum + tokensOf(picture), 0)
  })
}

/** An estimate of the tokens of the pictures in messages. */
export const pictureTokens = (messages: ReadonlyArray<Message>): number =>
  havePictures(messages) ? pictureTokensOfEach(messages).reduce((sum, tokens) => sum + tokens, 0) : 0

/** A message's text and pictures as a request has them. */
export interface Shown {
  readonly content: string
  readonly pictures: ReadonlyArray<ShownPicture>
}

const BLIND = "[not shown: you cannot see images here. Ask about it, or examine it with a program]"
const OLD = "[not shown any more: newer images took its place]"
const REFUSED = "[not shown: your provider refused this image. Examine it with a program]"
const GONE = "[not shown any more: it is not kept. If you need it, read it again]"

/** How a request shows its messages with pictures. Every call of it goes through the messages in their order. */
export const shownIn = (asked: Pick<Asked, "messages" | "model" | "pictures">): ((message: Pictured) => Shown) => {
  const isBlind = !takesPictures(asked.model)
  const newest = new Set(newestPictures(asked.messages))
  return ({ content, pictures = [] }) => {
    const shown: Array<ShownPicture> = []
    const missing = new Set<string>()
    for (const picture of pictures) {
      const data = asked.pictures?.get(picture.sha256)
      if (isBlind) missing.add(BLIND)
      else if (!newest.has(picture)) missing.add(OLD)
      else if (data === undefined) missing.add(GONE)
      else if (data === REFUSED_PICTURE) missing.add(REFUSED)
      else shown.push({ type: picture.type, data })
    }
    return { content: [content, ...missing].join("\n"), pictures: shown }
  }
}

type Parts = Pick<Asked, "messages" | "model" | "pictures">

const allShown = (asked: Parts): ReadonlyArray<Picture> =>
  takesPictures(asked.model)
    ? newestPictures(asked.messages).filter(
        ({ sha256 }) => (asked.pictures?.get(sha256) ?? REFUSED_PICTURE) !== REFUSED_PICTURE
      )
    : []

/** The digests of the pictures that a request shows. */
export const shownDigests = (asked: Parts): ReadonlyArray<string> => allShown(asked).map(({ sha256 }) => sha256)

/** The characters of base64 in a request, and the tokens that they count for. */
export const shownSize = (asked: Parts): { readonly chars: number; readonly tokens: number } => {
  const all = allShown(asked)
  return {
    chars: all.reduce((sum, { sha256 }) => sum + (asked.pictures?.get(sha256) ?? "").length, 0),
    tokens: all.reduce((sum, picture) => sum + tokensOf(picture), 0)
  }
}
