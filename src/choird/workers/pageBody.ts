/** The text in a body as a site sent it. Only the process that reads pages unpacks and decodes it: a fault in a decoder is then that process's alone. */
import { brotliDecompressSync, unzipSync } from "node:zlib"
import { PAGE_BYTES_MAX, type PageOrder } from "./pageProtocol.ts"

/** The beginning of a page, where it says how it is written. */
const META_BYTES_MAX = 2048

/** A body that cannot be unpacked. */
export class BodyRefused extends Error {}

const unpacked = (body: Buffer, encoding: PageOrder["encoding"]): Buffer => {
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

const named = (bytes: Buffer): string | undefined =>
  /<meta[^>]{1,200}charset=["']?([\w-]{1,40})/iu.exec(bytes.toString("latin1", 0, META_BYTES_MAX))?.[1]

/** The text of a body. @throws BodyRefused where it cannot be unpacked, or is too large. */
export const pageBody = (body: Buffer, { charset, encoding }: PageOrder): string => {
  const bytes = unpacked(body, encoding)
  try {
    return new TextDecoder(charset ?? named(bytes) ?? "utf-8").decode(bytes).toWellFormed()
  } catch {
    return bytes.toString("utf8").toWellFormed()
  }
}
