/** The kind of a file by its first bytes. What a sender says about a file is not believed. Pure. */

export interface FileKind {
  readonly mime: string
  /** Without a dot. */
  readonly ending: string
}

const ascii = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.subarray(from, to)).toString("latin1")

/** Bytes at the beginning that decide whether a file is a text. */
const TEXT_LOOKED_AT_BYTES = 64 * 1024

const SIGNATURES: ReadonlyArray<readonly [at: number, bytes: string, kind: FileKind]> = [
  [0, "\x89PNG\r\n\x1a\n", { mime: "image/png", ending: "png" }],
  [0, "\xff\xd8\xff", { mime: "image/jpeg", ending: "jpg" }],
  [0, "GIF87a", { mime: "image/gif", ending: "gif" }],
  [0, "GIF89a", { mime: "image/gif", ending: "gif" }],
  [0, "%PDF-", { mime: "application/pdf", ending: "pdf" }],
  [0, "PK\x03\x04", { mime: "application/zip", ending: "zip" }],
  [0, "\x1f\x8b", { mime: "application/gzip", ending: "gz" }],
  [0, "7z\xbc\xaf\x27\x1c", { mime: "application/x-7z-compressed", ending: "7z" }],
  [0, "fLaC", { mime: "audio/flac", ending: "flac" }],
  [0, "ID3", { mime: "audio/mpeg", ending: "mp3" }],
  [0, "\xff\xfb", { mime: "audio/mpeg", ending: "mp3" }],
  [0, "\x1aE\xdf\xa3", { mime: "video/webm", ending: "webm" }],
  [4, "ftypM4A", { mime: "audio/mp4", ending: "m4a" }],
  [4, "ftyp", { mime: "video/mp4", ending: "mp4" }],
  [0, "SQLite format 3\0", { mime: "application/vnd.sqlite3", ending: "sqlite" }]
]

const riff = (bytes: Uint8Array): FileKind | undefined => {
  if (ascii(bytes, 0, 4) !== "RIFF") return undefined
  const form = ascii(bytes, 8, 12)
  if (form === "WEBP") return { mime: "image/webp", ending: "webp" }
  return form === "WAVE" ? { mime: "audio/wav", ending: "wav" } : undefined
}

/** Telegram's voice messages are Opus in Ogg. */
const ogg = (bytes: Uint8Array): FileKind | undefined => {
  if (ascii(bytes, 0, 4) !== "OggS") return undefined
  return ascii(bytes, 28, 36) === "OpusHead"
    ? { mime: "audio/ogg; codecs=opus", ending: "ogg" }
    : { mime: "application/ogg", ending: "ogg" }
}

const isText = (bytes: Uint8Array): boolean => {
  const looked = bytes.subarray(0, TEXT_LOOKED_AT_BYTES)
  if (looked.includes(0)) return false
  try {
    // A character may be cut at the end of what is looked at.
    new TextDecoder("utf-8", { fatal: true }).decode(looked, { stream: looked.length < bytes.length })
    return true
  } catch {
    return false
  }
}

const ENDING = /\.([a-z0-9]{1,8})$/iu

/** The kind of a file. `name` only chooses the ending where the bytes say nothing. */
export const fileKind = (bytes: Uint8Array, name: string): FileKind => {
  const known =
    SIGNATURES.find(([at, signature]) => ascii(bytes, at, at + signature.length) === signature)?.[2] ??
    riff(bytes) ??
    ogg(bytes)
  if (known !== undefined) return known
  const ending = ENDING.exec(name)?.[1]?.toLowerCase()
  return isText(bytes)
    ? { mime: "text/plain", ending: ending ?? "txt" }
    : { mime: "application/octet-stream", ending: ending ?? "bin" }
}
