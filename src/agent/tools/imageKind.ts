/** The kind of an image file by its first bytes, in words; `undefined` for everything else. */
const KINDS: ReadonlyArray<readonly [kind: string, at: number, magic: Buffer]> = [
  ["PNG", 0, Buffer.from("\x89PNG\r\n\x1a\n", "latin1")],
  ["JPEG", 0, Buffer.from([0xff, 0xd8, 0xff])],
  ["GIF", 0, Buffer.from("GIF8")],
  ["WebP", 8, Buffer.from("WEBP")]
]

export const imageKind = (bytes: Uint8Array): string | undefined =>
  KINDS.find(([, at, magic]) => Buffer.from(bytes.subarray(at, at + magic.length)).equals(magic))?.[0]
