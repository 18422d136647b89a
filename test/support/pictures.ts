/** Pictures of every format with true headers. What follows a header is never looked at. */

const header = (text: string, ...parts: ReadonlyArray<Buffer>): Buffer =>
  Buffer.concat([Buffer.from(text, "latin1"), ...parts])

const be32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const be16 = (value: number): Buffer => be32(value).subarray(2)
const le16 = (value: number): Buffer => be16(value).reverse()
const le24 = (value: number): Buffer => Buffer.from([value & 255, (value >>> 8) & 255, (value >>> 16) & 255])

/** `more` makes another picture of the same size. */
export const pngOf = (width: number, height: number, more = ""): Buffer =>
  header("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", be32(width), be32(height), Buffer.from([8, 6, 0, 0, 0]), Buffer.from(more))

export const gifOf = (width: number, height: number): Buffer =>
  header("GIF89a", le16(width), le16(height), Buffer.alloc(3))

/** With a comment and fill bytes before the segment that tells its size. */
export const jpegOf = (width: number, height: number): Buffer =>
  header(
    "\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x02\0\0\x01\0\x01\0\0\xff\xfe\0\x05abc\xff\xff\xc2\0\x11\x08",
    be16(height),
    be16(width),
    Buffer.alloc(12)
  )

const riff = (kind: string, ...parts: ReadonlyArray<Buffer>): Buffer =>
  header(`RIFF\x20\0\0\0WEBP${kind}\x20\0\0\0`, ...parts, Buffer.alloc(12))

export const webpOf = (width: number, height: number): ReadonlyArray<Buffer> => [
  riff("VP8X", Buffer.alloc(4), le24(width - 1), le24(height - 1)),
  riff("VP8 ", Buffer.from([0, 0, 0, 0x9d, 0x01, 0x2a]), le16(width), le16(height)),
  riff("VP8L", Buffer.from([0x2f]), be32(((width - 1) | ((height - 1) << 14)) >>> 0).reverse())
]
