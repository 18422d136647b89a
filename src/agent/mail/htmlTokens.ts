/** The tags and texts of an HTML mail in their order. Each character is looked at a bounded number of times. */

export type HtmlToken =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "open"; readonly tag: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly type: "close"; readonly tag: string }
  /** The text between the tags of an element that holds no others, such as a style. */
  | {
      readonly type: "raw"
      readonly tag: string
      readonly text: string
      readonly attributes: ReadonlyMap<string, string>
    }

/** Attributes of one tag that are read. */
const ATTRIBUTES_MAX = 100

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  colon: ":",
  semi: ";"
}
const CODE_POINT_MAX = 0x10_ffff

const decodedOne = (entity: string): string => {
  const body = entity.slice(1, -1)
  if (!body.startsWith("#")) return ENTITIES[body.toLowerCase()] ?? entity
  const point = /^#x/iu.test(body) ? Number.parseInt(body.slice(2), 16) : Number.parseInt(body.slice(1), 10)
  return point > 0 && point <= CODE_POINT_MAX ? String.fromCodePoint(point).toWellFormed() : ""
}

const decoded = (text: string): string =>
  text.includes("&") ? text.replaceAll(/&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,6});/giu, decodedOne) : text

const RAW = new Set(["script", "style", "title", "template", "noscript"])
const TAG = /<(\/?)([a-z][^\s/>]{0,40})/iuy
const ATTRIBUTE = /[\s/]*([^\s=>/"'][^\s=>/]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?/uy
const REST = /[^>]*>?/uy

const NONE: ReadonlyMap<string, string> = new Map()

interface Tag {
  readonly attributes: ReadonlyMap<string, string>
  /** Where what follows the tag begins. */
  readonly next: number
}

const tagFrom = (html: string, from: number): Tag => {
  if (html[from] === ">") return { attributes: NONE, next: from + 1 }
  const attributes = new Map<string, string>()
  let at = from
  for (let count = 0; count < ATTRIBUTES_MAX; count++) {
    ATTRIBUTE.lastIndex = at
    const found = ATTRIBUTE.exec(html)
    if (found === null) break
    at = ATTRIBUTE.lastIndex
    const [, name = "", double, single, bare] = found
    // Of two with the same name the first counts.
    if (!attributes.has(name.toLowerCase())) attributes.set(name.toLowerCase(), decoded(double ?? single ?? bare ?? ""))
  }
  REST.lastIndex = at
  REST.exec(html)
  return { attributes, next: REST.lastIndex }
}

/** Where a comment or a declaration at `open` ends. */
const afterMark = (html: string, open: number): number => {
  if (!html.startsWith("<!--", open)) {
    const end = html.indexOf(">", open)
    return end === -1 ? html.length : end + 1
  }
  // An empty comment is closed by the end of its own beginning.
  const [plain, loud] = [html.indexOf("-->", open + 2), html.indexOf("--!>", open + 2)]
  const ends = [plain === -1 ? html.length : plain + 3, loud === -1 ? html.length : loud + 4]
  return Math.min(...ends)
}

const endOfRaw = (html: string, lower: string, tag: string, from: number) => {
  const close = lower.indexOf(`</${tag}`, from)
  const end = close === -1 ? -1 : html.indexOf(">", close)
  return { text: html.slice(from, close === -1 ? html.length : close), next: end === -1 ? html.length : end + 1 }
}

export function* htmlTokens(html: string): Generator<HtmlToken> {
  const lower = html.toLowerCase()
  let at = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open !== at) yield { type: "text", text: decoded(html.slice(at, open === -1 ? html.length : open)) }
    if (open === -1) return
    TAG.lastIndex = open
    const found = TAG.exec(html)
    if (found === null) {
      const isMark = /[!?/]/u.test(html[open + 1] ?? "")
      if (!isMark) yield { type: "text", text: "<" }
      at = isMark ? afterMark(html, open) : open + 1
      continue
    }
    const tag = (found[2] ?? "").toLowerCase()
    const { attributes, next } = tagFrom(html, TAG.lastIndex)
    at = next
    if (found[1] === "/") yield { type: "close", tag }
    else if (RAW.has(tag)) {
      const raw = endOfRaw(html, lower, tag, next)
      at = raw.next
      yield { type: "raw", tag, text: raw.text, attributes }
    } else yield { type: "open", tag, attributes }
  }
}
