/** The way in which Telegram shows a file, by its bytes. Pure. */
import type { SentFile } from "#schema/SentFile.ts"
import { CHANNEL_TRAITS } from "#src/shared/config/channelTraits.ts"

export type MediaKind = "document" | "photo" | "video" | "voice" | "audio"

/** A larger picture Telegram takes only as a document. */
const PHOTO_BYTES_MAX = 10 * 1024 * 1024
/** Files of one album. */
const ALBUM_FILES_MAX = 10
/** Bytes of one call that uploads files. */
const UPLOAD_BYTES_MAX = CHANNEL_TRAITS.telegram.file_bytes_out_max

const KINDS: Readonly<Record<string, MediaKind>> = {
  "image/png": "photo",
  "image/jpeg": "photo",
  "image/webp": "photo",
  "video/mp4": "video",
  "audio/ogg; codecs=opus": "voice",
  "audio/mpeg": "audio",
  "audio/mp4": "audio"
}

export const mediaKind = (mime: string, { as, bytes }: Pick<SentFile, "as" | "bytes">): MediaKind => {
  const kind = as ?? KINDS[mime] ?? "document"
  return kind === "photo" && bytes > PHOTO_BYTES_MAX ? "document" : kind
}

/** The kinds that are beside each other in an album; a voice note stands alone. */
const albumOf = (kind: MediaKind) => (kind === "photo" || kind === "video" ? "visual" : kind)

/** Files in their order, joined to albums where Telegram shows them as one. */
export const albums = <F extends { readonly kind: MediaKind; readonly bytes: number }>(
  files: ReadonlyArray<F>
): ReadonlyArray<ReadonlyArray<F>> => {
  const groups: Array<Array<F>> = []
  for (const file of files) {
    const group = groups.at(-1)
    const fits =
      group !== undefined &&
      file.kind !== "voice" &&
      group.length < ALBUM_FILES_MAX &&
      group.every(({ kind }) => albumOf(kind) === albumOf(file.kind)) &&
      group.reduce((sum, { bytes }) => sum + bytes, file.bytes) <= UPLOAD_BYTES_MAX
    if (fits) group.push(file)
    else groups.push([file])
  }
  return groups
}
