/** The format and the size of a picture by its first bytes, which are hostile: nothing is decoded, and every read stays within them. */
import type { PictureType } from "#schema/Picture.ts"

export interface Header {
  readonly type: PictureType
  /** In pixels; absent where the header does not tell them at once. */
  readonly size?: { readonly width: number; readonly height: number }
}

interface Format {
  readonly type: PictureType
  readonly at: number
  readonly magic: Buffer
  readonly size: (bytes: Buffer) => readonly [width: number, height: number] | undefined
}

/** Bytes of a JPEG in which the segment with its size is looked for. */
const JPEG_HEADER_BYTES_MAX = 256 * 1024
/** The segments of JPEG that begin an image and tell its size, without those of the same range that do not. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

const jpegSize: Format["size"] = (bytes) => {
  const end = Math.min(bytes.length, JPEG_HEADER_BYTES_MAX) - 9
  for (let at = 2; at <= end;) {
    const marker = bytes[at + 1] ?? 0
    if (bytes[at] !== 0xff) return undefined
    if (isFrame(marker)) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)]
    // A marker may have fill bytes before it, and a segment is at least as long as its length.
    at += marker === 0xff ? 1 : 2 + Math.max(2, bytes.readUInt16BE(at + 2))
  }
  return undefined
}

const webpSize: Format["size"] = (bytes) => {
  if (bytes.length < 30) return undefined
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff]
    case "VP8L": {
      const bits = bytes.readUInt32LE(21)
      return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
    }
    case "VP8X":
      return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1]
    default:
      return undefined
  }
}

const FORMATS: ReadonlyArray<Format> = [
  {
    type: "image/png",
    at: 0,
    magic: Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    size: (bytes) => (bytes.length < 24 ? undefined : [bytes.readUInt32BE(16), bytes.readUInt32BE(20)])
  },
  { type: "image/jpeg", at: 0, magic: Buffer.from([0xff, 0xd8, 0xff]), size: jpegSize },
  {
    type: "image/gif",
    at: 0,
    magic: Buffer.from("GIF8"),
    size: (bytes) => (bytes.length < 10 ? undefined : [bytes.readUInt16LE(6), bytes.readUInt16LE(8)])
  },
  { type: "image/webp", at: 8, magic: Buffer.from("WEBP"), size: webpSize }
]

/** The header of a picture; `undefined` for everything else. */
export const pictureHeader = (file: Uint8Array): Header | undefined => {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  const format = FORMATS.find(({ at, magic }) => bytes.subarray(at, at + magic.length).equals(magic))
  if (format === undefined) return undefined
  const [width = 0, height = 0] = format.size(bytes) ?? []
  return { type: format.type, ...(width > 0 && height > 0 ? { size: { width, height } } : {}) }
}
