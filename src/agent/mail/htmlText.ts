/** The words of an HTML mail, without anything that a reader does not see. It looks at each character a bounded number of times. */

/** Characters of HTML that are looked at. */
const HTML_CHARS_MAX = 1_000_000

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " }
const CODE_POINT_MAX = 0x10_ffff

const decoded = (entity: string): string => {
  const body = entity.slice(1, -1)
  if (!body.startsWith("#")) return ENTITIES[body.toLowerCase()] ?? entity
  const point = /^#x/iu.test(body) ? Number.parseInt(body.slice(2), 16) : Number.parseInt(body.slice(1), 10)
  return point > 0 && point <= CODE_POINT_MAX ? String.fromCodePoint(point).toWellFormed() : ""
}

const HIDDEN = new Set(["script", "style", "head", "title", "template", "noscript"])
const BREAKS = new Set(["br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote", "hr"])

/** The end of what a reader never sees: after the closing tag, or of everything. */
const afterHidden = (html: string, lower: string, tag: string, from: number): number => {
  const close = lower.indexOf(`</${tag}`, from)
  const end = close === -1 ? -1 : html.indexOf(">", close)
  return end === -1 ? html.length : end + 1
}

/** The text between tags. */
export const htmlText = (whole: string): string => {
  const html = whole.slice(0, HTML_CHARS_MAX)
  const lower = html.toLowerCase()
  const parts: Array<string> = []
  let at = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    parts.push(html.slice(at, open === -1 ? html.length : open))
    if (open === -1) break
    if (html.startsWith("<!--", open)) {
      const end = html.indexOf("-->", open)
      at = end === -1 ? html.length : end + 3
      continue
    }
    const end = html.indexOf(">", open)
    if (end === -1) break
    const tag = /^<\/?([a-z][a-z0-9]{0,20})/u.exec(lower.slice(open, open + 24))?.[1] ?? ""
    const isClosing = html[open + 1] === "/"
    if (BREAKS.has(tag)) parts.push("\n")
    at = HIDDEN.has(tag) && !isClosing ? afterHidden(html, lower, tag, end) : end + 1
  }
  return parts
    .join("")
    .replaceAll(/&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,6});/giu, decoded)
    .replaceAll(/[^\S\n]+/gu, " ")
    .replaceAll(/ ?\n[ \n]*/gu, "\n")
    .trim()
}
