/** The text in a body as a site sent it. Only the process that reads pages unpacks and decodes it: a fault in a decoder is then that process's alone. */
import { brotliDecompressSync, unzipSync } from "node:zlib"
import { charactersOf } from "#src/shared/text/characterSet.ts"
import { PAGE_BYTES_MAX, type PageOrder } from "./pageProtocol.ts"

/** A body that cannot be unpacked, or is not text. */
export class BodyRefused extends Error {}

/** The bytes of a body. @throws BodyRefused where it cannot be unpacked, or is too large. */
export const unpacked = (body: Buffer, encoding: PageOrder["encoding"]): Buffer => {
  if (encoding === undefined) return body
  const limits = { maxOutputLength: PAGE_BYTES_MAX }
  try {
    return encoding === "br" ? brotliDecompressSync(body, limits) : unzipSync(body, limits)
  } catch (error) {
    const isLarge = error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"
    throw new BodyRefused(
      isLarge ? `it is larger than ${PAGE_BYTES_MAX / 1024 / 1024} MiB` : "its compression is broken"
    )
  }
}

/** The first bytes of formats other than text, and their names. */
const KINDS: ReadonlyArray<readonly [start: string, name: string]> = [
  ["1f8b", "data that gzip compressed, which the site does not say"],
  ["28b52ffd", "data that Zstandard compressed, which the site does not say"],
  ["504b0304", "a ZIP archive or a document of Office"],
  ["89504e47", "a picture"],
  ["ffd8ff", "a picture"],
  ["7f454c46", "a program"],
  ["d0cf11e0", "a document of Office"]
]

/** Bytes of a body that are looked at for what no text has. */
const LOOKED_AT_BYTES_MAX = 4096

/** @throws BodyRefused with its name where a body is not text. */
const requireText = (bytes: Buffer, text: string) => {
  const start = bytes.toString("hex", 0, 8)
  const [, name] = KINDS.find(([first]) => start.startsWith(first)) ?? []
  if (name !== undefined) throw new BodyRefused(`it is ${name}, not text`)
  if (text.slice(0, LOOKED_AT_BYTES_MAX).includes("\0")) throw new BodyRefused("it is binary data, not text")
}

/** The text of a body. @throws BodyRefused where it cannot be unpacked, is too large, or is not text. */
export const pageBody = (body: Buffer, { charset, encoding, form }: PageOrder): string => {
  const bytes = unpacked(body, encoding)
  const text = charactersOf(bytes, { header: charset, isHtml: form === "html" || form === "unknown" })
  requireText(bytes, text)
  return text
}
