/**
 * A parser of messages with a limit on the work that each can make. The library keeps an object for each line of a body and never pauses, so that a
 * small mail of newlines would take all memory of an agent.
 */
import { setImmediate as pause } from "node:timers/promises"
import PostalMime, { type Email, type PostalMimeOptions } from "postal-mime"

/** Parts within parts, and bytes of all headers. */
const MIME_DEPTH_MAX = 20
const MIME_HEADER_BYTES_MAX = 256 * 1024
/** Lines of a message: 25 MiB of base64 have 345,000. */
export const MIME_LINES_MAX = 450_000
const MIME_LINE_BYTES_MAX = 1024 * 1024
/** Beginnings and ends of parts. */
const MIME_BOUNDARIES_MAX = 20_000
/** Paddings within base64, each of which ends a piece of its own. */
const MIME_PADDINGS_MAX = 50_000
/** Decoded text of all parts. Files do not count. */
const MIME_TEXT_BYTES_MAX = 1024 * 1024
/** Pieces of a body until they become one. */
const PIECES_MAX = 1024
/** Lines, and their bytes, between pauses for the agent's other work. */
const LINES_AT_ONCE_MAX = 2000
const BYTES_AT_ONCE_MAX = 256 * 1024

const LINE_FEED = 0x0a
const PADDING = 0x3d

type Piece = ArrayBuffer | Uint8Array<ArrayBuffer> | string

/** Members of the library's parser that it does not declare; readMime.test.ts fails when a version no longer has them. */
interface Part {
  readonly content: ArrayBuffer | null
  readonly contentDecoder: { readonly chunks: Array<Piece> } | null
  readonly contentTransferEncoding: { readonly encoding: string }
}
interface Inside {
  readonly currentNode: Part
  isInlineTextNode(part: Part): boolean
  processLine(line: Uint8Array, isLast: boolean): Promise<void>
  collectNode(part: Part, alternative: unknown, isRelated: boolean): Promise<void>
}
const Parser = PostalMime as unknown as new (options: PostalMimeOptions) => PostalMime & Inside

const bytesOf = (piece: Piece): Uint8Array => (typeof piece === "string" ? Buffer.from(piece) : new Uint8Array(piece))

const count = (bytes: Uint8Array, byte: number, enough: number): number => {
  let found = 0
  for (let at = bytes.indexOf(byte); at !== -1 && found <= enough; at = bytes.indexOf(byte, at + 1)) found += 1
  return found
}

const refuseOver = (has: number, max: number, what: string): void => {
  if (has > max) throw new Error(`it has more than ${max} ${what}`)
}

class BoundedParser extends Parser {
  #boundaries = 0
  #paddings = 0
  #text_bytes = 0
  #lines_at_once = 0
  #bytes_at_once = 0
  /** The pieces of the part's body that were made of others. */
  #joined = 0
  readonly #signal: AbortSignal

  constructor(options: PostalMimeOptions, signal: AbortSignal) {
    super(options)
    this.#signal = signal
  }

  override async processLine(line: Uint8Array, isLast: boolean) {
    refuseOver(line.length, MIME_LINE_BYTES_MAX, "bytes in a line")
    const part = this.currentNode
    if (/base64/iu.test(part.contentTransferEncoding.encoding)) {
      this.#paddings += count(line, PADDING, MIME_PADDINGS_MAX)
      refuseOver(this.#paddings, MIME_PADDINGS_MAX, "paddings within base64")
    }
    await super.processLine(line, isLast)
    if (this.currentNode === part) this.#join(part)
    else {
      this.#joined = 0
      this.#boundaries += 1
      refuseOver(this.#boundaries, MIME_BOUNDARIES_MAX, "boundaries of parts")
    }
    await this.#pauseAfter(line)
  }

  override async collectNode(part: Part, alternative: unknown, isRelated: boolean) {
    if (this.isInlineTextNode(part)) this.#text_bytes += part.content?.byteLength ?? 0
    refuseOver(this.#text_bytes, MIME_TEXT_BYTES_MAX, "bytes of text")
    await super.collectNode(part, alternative, isRelated)
  }

  #join({ contentDecoder }: Part) {
    const pieces = contentDecoder?.chunks
    if (pieces === undefined || pieces.length - this.#joined < PIECES_MAX) return
    const whole = Buffer.concat(pieces.splice(this.#joined).map(bytesOf))
    this.#joined = pieces.push(new Uint8Array(whole))
  }

  async #pauseAfter({ length }: Uint8Array) {
    this.#lines_at_once += 1
    this.#bytes_at_once += length
    if (this.#lines_at_once < LINES_AT_ONCE_MAX && this.#bytes_at_once < BYTES_AT_ONCE_MAX) return
    this.#lines_at_once = 0
    this.#bytes_at_once = 0
    await pause()
    this.#signal.throwIfAborted()
  }
}

/** The parts of a message. Fails when it would make too much work. */
export const boundedMime = async (raw: Uint8Array, signal: AbortSignal): Promise<Email> => {
  refuseOver(count(raw, LINE_FEED, MIME_LINES_MAX), MIME_LINES_MAX, "lines")
  const options: PostalMimeOptions = {
    attachmentEncoding: "arraybuffer",
    forceRfc822Attachments: true,
    maxNestingDepth: MIME_DEPTH_MAX,
    maxHeadersSize: MIME_HEADER_BYTES_MAX
  }
  return await new BoundedParser(options, signal).parse(raw)
}
