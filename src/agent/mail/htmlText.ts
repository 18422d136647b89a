/** The words of an HTML mail, without anything that a reader does not see: the mail's own styles say what that is. */
import { type StyledElement, StyleSheet } from "#src/shared/web/styleSheet.ts"
import { FIRST_LOOK, isSeen, type Look, lookOf } from "#src/shared/web/visibility.ts"
import { htmlTokens } from "./htmlTokens.ts"

/** Characters of HTML that are looked at. */
const HTML_CHARS_MAX = 1_000_000
/** Elements within elements; deeper ones each take the place of the one around them. */
const HTML_DEPTH_MAX = 1000

const BLOCKS = new Set(
  "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split(
    " "
  )
)
const CELLS = new Set(["td", "th"])
/** Elements whose lines are their own. */
const BREAKS = new Set(["br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote", "hr"])
const EMPTY = new Set("area base br col embed hr img input link meta param source track wbr".split(" "))
/** The elements of a head; any other ends it. */
const OF_HEAD = new Set(["base", "link", "meta"])

interface Open extends StyledElement {
  readonly parent: Open | undefined
  readonly look: Look
}

/** Whether a new element ends an open one by itself. */
const endsBefore = (open: string, tag: string): boolean => {
  if (open === "head") return !OF_HEAD.has(tag)
  if (open === "p") return BLOCKS.has(tag)
  if (open === "li") return tag === "li"
  if (open === "tr") return tag === "tr"
  return CELLS.has(open) && (CELLS.has(tag) || tag === "tr")
}

/** The open elements of a mail, the innermost one at hand. */
class OpenElements {
  #top: Open | undefined
  #depth = 0
  readonly #sheet: StyleSheet

  constructor(sheet: StyleSheet) {
    this.#sheet = sheet
  }

  get isSeen(): boolean {
    return this.#top === undefined || isSeen(this.#top.look)
  }

  begin(tag: string, attributes: ReadonlyMap<string, string>) {
    while (this.#top !== undefined && endsBefore(this.#top.tag, tag)) this.#pop(this.#top)
    const element: StyledElement = { tag, parent: this.#top, attribute: (name) => attributes.get(name) }
    if (EMPTY.has(tag)) return
    const look = lookOf(element, this.#top?.look ?? FIRST_LOOK, this.#sheet)
    if (this.#top !== undefined && this.#depth >= HTML_DEPTH_MAX) this.#pop(this.#top)
    this.#top = { ...element, parent: this.#top, look: tag === "head" ? { ...look, isGone: true } : look }
    this.#depth += 1
  }

  /** Ends the innermost element of this kind. That of a part of a line cannot end a block around which it stands. */
  end(tag: string) {
    for (let found = this.#top; found !== undefined; found = found.parent) {
      if (found.tag === tag) {
        while (this.#top !== undefined && this.#top !== found) this.#pop(this.#top)
        this.#pop(found)
        return
      }
      if (BLOCKS.has(found.tag) && !BLOCKS.has(tag)) return
    }
  }

  #pop({ parent }: Open) {
    this.#top = parent
    this.#depth -= 1
  }
}

/** The styles of a mail, which count for earlier elements too. */
const stylesIn = (html: string): string => {
  const styles: Array<string> = []
  for (const token of htmlTokens(html))
    if (token.type === "raw" && token.tag === "style") {
      const media = token.attributes.get("media")
      styles.push(media === undefined ? token.text : `@media ${media} {${token.text}}`)
    }
  return styles.join("\n")
}

/** The text between tags. */
export const htmlText = (whole: string): string => {
  const html = whole.slice(0, HTML_CHARS_MAX)
  const open = new OpenElements(new StyleSheet(/<style/iu.test(html) ? stylesIn(html) : ""))
  const parts: Array<string> = []
  for (const token of htmlTokens(html)) {
    if (token.type === "text") {
      if (open.isSeen) parts.push(token.text)
      continue
    }
    if (token.type === "raw") continue
    if (BREAKS.has(token.tag)) parts.push("\n")
    if (token.type === "open") open.begin(token.tag, token.attributes)
    else open.end(token.tag)
  }
  return parts
    .join("")
    .replaceAll(/[^\S\n]+/gu, " ")
    .replaceAll(/ ?\n[ \n]*/gu, "\n")
    .trim()
}
