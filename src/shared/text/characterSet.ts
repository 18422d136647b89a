/** In which characters a text of a stranger is written, in the order that browsers ask: its byte order mark, its header, itself, and its bytes. */
import { isUtf8 } from "node:buffer"

/** The beginning of HTML, in which it names its characters. */
const META_BYTES_MAX = 2048
/** Names that say nothing about the bytes above 127. */
const SILENT = /^(?:(?:us-)?ascii|ansi_x3\.4-19\d\d|iso646-us|(?:x-)?unknown(?:-8bit)?|8bit|7bit|binary|default|none)$/u

/** Numbers of code pages by which mail programs name encodings of the WHATWG. */
const PAGES: Readonly<Record<string, string>> = {
  "932": "shift_jis",
  "936": "gbk",
  "949": "euc-kr",
  "950": "big5",
  "874": "windows-874",
  "65001": "utf-8",
  "50220": "iso-2022-jp",
  "50221": "iso-2022-jp",
  "51932": "euc-jp"
}

/** Other ways to write a name that the WHATWG knows. */
const spellings = (label: string): ReadonlyArray<string> => {
  const page = /^(?:cp|ms|ibm|windows|x-ms-cp)[-_]?(\d+)$/u.exec(label)?.[1]
  const plain = label.replace(/^(?:x-|cs)/u, "").replaceAll("_", "-")
  return [
    label,
    ...(page === undefined ? [] : [PAGES[page] ?? `windows-${page}`]),
    plain,
    plain.replace(/^(?:iso-)?latin-?(\d)$/u, "latin$1"),
    plain.replace(/^(iso-2022-jp)-\w+$/u, "$1"),
    plain.replace(/^utf-?8.*$/u, "utf-8")
  ]
}

const encodingOf = (label: string): string | undefined => {
  try {
    return new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

/** The WHATWG's name of an encoding; `undefined` for one that is not known. */
const known = (name: string | undefined): string | undefined => {
  const label = name?.trim().toLowerCase()
  if (label === undefined || SILENT.test(label)) return undefined
  return spellings(label)
    .map(encodingOf)
    .find((encoding) => encoding !== undefined)
}

const marked = (bytes: Uint8Array): string | undefined => {
  const [first, second, third] = bytes
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8"
  if (first === 0xff && second === 0xfe) return "utf-16le"
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined
}

const META = /<meta[^>]{1,200}?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})/iu
const XML = /^<\?xml[^>]{1,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})/iu

/** The name that a document has in itself: HTML in its head, XML in its first line. It cannot be in UTF-16 if that can be read. */
const named = (bytes: Uint8Array, isHtml: boolean): string | undefined => {
  const start = Buffer.from(bytes.subarray(0, META_BYTES_MAX)).toString("latin1")
  const label = known((isHtml ? META.exec(start)?.[1] : undefined) ?? XML.exec(start)?.[1])
  return label?.startsWith("utf-16") === true ? "utf-8" : label
}

/** UTF-8 without a single character of it is another set, whose name was forgotten. */
const isOtherwise = (bytes: Uint8Array): boolean => {
  const text = Buffer.from(bytes).toString("utf8")
  return !isUtf8(bytes) && !/(?!\u{fffd})[\u{80}-\u{10ffff}]/u.test(text)
}

export interface Characters {
  /** The name in the header of the mail or of the answer. */
  readonly header?: string | undefined
  readonly isHtml: boolean
}

/** The name of the set, one that `TextDecoder` knows. */
export const characterSet = (bytes: Uint8Array, { header, isHtml }: Characters): string => {
  const stated = marked(bytes) ?? known(header) ?? named(bytes, isHtml)
  if (stated === undefined) return isUtf8(bytes) ? "utf-8" : "windows-1252"
  return stated === "utf-8" && isOtherwise(bytes) ? "windows-1252" : stated
}

/** The text of bytes, without their byte order mark. */
export const charactersOf = (bytes: Uint8Array, characters: Characters): string =>
  new TextDecoder(characterSet(bytes, characters)).decode(bytes).toWellFormed()
