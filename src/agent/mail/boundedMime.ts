/**
 * A parser of messages with a limit on the work that each can make. The library keeps an object for each line of a body, so that a small mail of newlines
 * would take all memory of the process that reads it.
 */
import PostalMime, { type Email, type PostalMimeOptions } from "postal-mime"
import { isUtf8 } from "node:buffer"
import { characterSet } from "#src/shared/text/characterSet.ts"
import { flowedText } from "./flowedText.ts"
import type { MailRefusal } from "./mailProtocol.ts"

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

/** Lines behind the base64 of a part that are kept, and their length. */
const FOOTER_LINES_MAX = 100
const FOOTER_LINE_BYTES_MAX = 998

const LINE_FEED = 0x0a
const PADDING = 0x3d

type Piece = ArrayBuffer | Uint8Array<ArrayBuffer> | string

/** Members of the library's parser that it does not declare; readMime.test.ts fails when a version no longer has them. */
interface Part {
  readonly state: "header" | "body" | "finished"
  readonly depth: number
  readonly content: ArrayBuffer | null
  readonly contentDecoder: { readonly chunks: Array<Piece> } | null
  readonly contentTransferEncoding: { readonly encoding: string }
  readonly childNodes: ReadonlyArray<Part>
  readonly contentType: {
    parsed: { readonly value: string; readonly params: Record<string, string> }
    multipart: string | false
  }
  getTextContent(): string
  decodeFlowedText(text: string, delSp: boolean): string
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

/** A mail that is refused for what it would cost. */
export class MailRefused extends Error {
  readonly max: number
  readonly why: MailRefusal
  constructor(max: number, why: MailRefusal) {
    super(`more than ${max} ${why}`)
    this.max = max
    this.why = why
  }
}

const refuseOver = (has: number, max: number, why: MailRefusal): void => {
  if (has > max) throw new MailRefused(max, why)
}

/** Bytes of a mail in which a name of its characters is looked for. */
const SET_BYTES_MAX = 64 * 1024

/** The first set that a mail names. Old programs write letters of it into headers, without saying so there. */
const firstSet = (raw: Uint8Array): string => {
  const start = Buffer.from(raw.subarray(0, SET_BYTES_MAX)).toString("latin1")
  const names = [...start.matchAll(/charset\s*=\s*"?([\w.:-]{1,40})/giu)].map(([, name]) => name)
  const sets = names.map((header) => characterSet(Buffer.from([0xe9, 0x20]), { header, isHtml: false }))
  return sets.find((set) => set !== "utf-8") ?? "windows-1252"
}

const headerLine = (line: Uint8Array, set: string): Uint8Array =>
  isUtf8(line) ? line : new Uint8Array(Buffer.from(new TextDecoder(set).decode(line)))

/** Names the characters of a text as they are, where its header is silent or wrong, before the library decodes it. */
const settleCharacters = ({ content, contentType: { parsed } }: Part) => {
  if (content === null || !/^text\/|^application\/ics$/u.test(parsed.value)) return
  const isHtml = parsed.value === "text/html"
  parsed.params["charset"] = characterSet(new Uint8Array(content), { header: parsed.params["charset"], isHtml })
}

/** Parts whose marks never come are a text, as a person would see it. */
const settleKind = ({ childNodes, content, contentType }: Part) => {
  if (contentType.multipart === false || childNodes.length > 0 || content === null) return
  contentType.multipart = false
  contentType.parsed = { value: "text/plain", params: {} }
}

const NOT_BASE64 = /[^A-Za-z0-9+/=\s]|\S\s+\S/u

class BoundedParser extends Parser {
  #boundaries = 0
  #paddings = 0
  #text_bytes = 0
  /** The pieces of the part's body that were made of others. */
  #joined = 0
  /** Lines that a mailing list wrote behind the base64 of a part. */
  readonly #footers = new Map<Part, Array<string>>()
  /** The characters of headers that are not in UTF-8. */
  readonly #set: string

  constructor(options: PostalMimeOptions, set: string) {
    super(options)
    this.#set = set
  }

  override async processLine(line: Uint8Array, isLast: boolean) {
    refuseOver(line.length, MIME_LINE_BYTES_MAX, "bytes in a line")
    const part = this.currentNode
    if (part.state === "body" && /base64/iu.test(part.contentTransferEncoding.encoding)) {
      if (this.#isFooter(part, line)) return isLast ? await super.processLine(new Uint8Array(), true) : undefined
      this.#paddings += count(line, PADDING, MIME_PADDINGS_MAX)
      refuseOver(this.#paddings, MIME_PADDINGS_MAX, "paddings within base64")
    }
    await super.processLine(part.state === "header" ? headerLine(line, this.#set) : line, isLast)
    if (this.currentNode === part) return this.#join(part)
    this.#joined = 0
    this.#boundaries += 1
    refuseOver(this.#boundaries, MIME_BOUNDARIES_MAX, "boundaries of parts")
  }

  /** A mail that is nothing but a text has it as its body, whatever it calls it. */
  override isInlineTextNode(part: Part): boolean {
    const isWhole = part.depth === 0 && /^text\/(?:plain|html)$/u.test(part.contentType.parsed.value)
    return isWhole || super.isInlineTextNode(part)
  }

  override async collectNode(part: Part, alternative: unknown, isRelated: boolean) {
    if (this.isInlineTextNode(part)) this.#text_bytes += part.content?.byteLength ?? 0
    refuseOver(this.#text_bytes, MIME_TEXT_BYTES_MAX, "bytes of text")
    settleKind(part)
    settleCharacters(part)
    const footer = this.#footers.get(part)?.join("\n").trim() ?? ""
    const textOf = part.getTextContent.bind(part)
    // Base64 often lacks the last line end, which would join a text with the next one.
    part.getTextContent = () => `${textOf().trimEnd()}\n${footer === "" ? "" : `\n${footer}\n`}`
    part.decodeFlowedText = flowedText
    await super.collectNode(part, alternative, isRelated)
  }

  /** Whether a line is text behind the end of base64, which would be read as more of it. */
  #isFooter(part: Part, line: Uint8Array): boolean {
    const lines = this.#footers.get(part)
    if (line.length > FOOTER_LINE_BYTES_MAX) return false
    const text = Buffer.from(line).toString("utf8")
    if (lines === undefined) {
      if (/=\s*$/u.test(text)) this.#footers.set(part, [])
      return false
    }
    if (text.startsWith("--") && text.trim() !== "--") return false
    const isText = lines.length > 0 || NOT_BASE64.test(text)
    if (isText && lines.length < FOOTER_LINES_MAX) lines.push(text)
    return isText
  }

  #join({ contentDecoder }: Part) {
    const pieces = contentDecoder?.chunks
    if (pieces === undefined || pieces.length - this.#joined < PIECES_MAX) return
    const whole = Buffer.concat(pieces.splice(this.#joined).map(bytesOf))
    this.#joined = pieces.push(new Uint8Array(whole))
  }
}

/** The parts of a message. @throws MailRefused when it would make too much work. */
export const boundedMime = async (raw: Uint8Array): Promise<Email> => {
  refuseOver(count(raw, LINE_FEED, MIME_LINES_MAX), MIME_LINES_MAX, "lines")
  const options: PostalMimeOptions = {
    attachmentEncoding: "arraybuffer",
    forceRfc822Attachments: true,
    maxNestingDepth: MIME_DEPTH_MAX,
    maxHeadersSize: MIME_HEADER_BYTES_MAX
  }
  try {
    return await new BoundedParser(options, firstSet(raw)).parse(raw)
  } catch (error) {
    const [, limit] = (error instanceof Error ? /^Maximum (MIME nesting|header size)/u.exec(error.message) : null) ?? []
    if (limit === "MIME nesting") throw new MailRefused(MIME_DEPTH_MAX, "parts within parts")
    if (limit === "header size") throw new MailRefused(MIME_HEADER_BYTES_MAX, "bytes of headers")
    throw error
  }
}
