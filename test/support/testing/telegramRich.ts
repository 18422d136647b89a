/**
 * What a rich message becomes at Telegram, as the Bot API describes it: its words, the buttons that a person can tap, its links, and the media that
 * Telegram's servers fetch. Markdown holds HTML and entities there; blocks are taken as they are.
 */
import { Predicate } from "effect"
import type { JsonObject } from "./telegramMethods.ts"

const CHARS_MAX = 32_768
const BLOCKS_MAX = 500
const COLUMNS_MAX = 20
const DEPTH_MAX = 16
const ROW_BUTTONS_MAX = 8

export interface RichShown {
  readonly text: string
  readonly buttons: ReadonlyArray<{ readonly text: string; readonly data: string }>
  readonly links: ReadonlyArray<string>
  readonly fetched: ReadonlyArray<string>
}

const NAMED: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”"
}

const decoded = (text: string): string =>
  text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/giu, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[String(name)] ?? whole
    const code = hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ""
  })

const attribute = (attributes: string, name: string): string =>
  decoded(new RegExp(`\\b${name}\\s*=\\s*"([^"]*)"`, "iu").exec(attributes)?.[1] ?? "")

/** Markdown with HTML in it. */
export const richMarkdown = (markdown: string): RichShown => {
  const shown = { buttons: [], links: [], fetched: [] } as {
    buttons: Array<{ text: string; data: string }>
    links: Array<string>
    fetched: Array<string>
  }
  const text = markdown
    .replaceAll(/<tg-button(?=[\s>])([^>]*)>([^]*?)<\/tg-button>/giu, (_, attributes: string, label: string) => {
      if (attribute(attributes, "type") === "callback_data")
        shown.buttons.push({ text: decoded(label), data: attribute(attributes, "data") })
      else shown.links.push(attribute(attributes, "url"))
      return ""
    })
    .replaceAll(/<(?:img|video|audio|tg-document)\b([^>]*)>/giu, (_, attributes: string) => {
      shown.fetched.push(attribute(attributes, "src"))
      return ""
    })
    .replaceAll(/!\[[^\]]*\]\(\s*([^\s)]+)[^)]*\)/gu, (_, url: string) => {
      shown.fetched.push(url)
      return ""
    })
    .replaceAll(/<a\b([^>]*)>/giu, (_, attributes: string) => {
      shown.links.push(attribute(attributes, "href"))
      return ""
    })
    .replaceAll(/\[([^\]]*)\]\(\s*([^\s)]+)[^)]*\)/gu, (_, label: string, url: string) => {
      shown.links.push(url)
      return label
    })
    .replaceAll(/<\/?[a-z][^>]*>/giu, "")
  return { ...shown, text: decoded(text) }
}

const TEXTS = new Set("bold italic underline strikethrough spoiler subscript superscript marked code".split(" "))
const MEDIA = new Set("animation audio document photo video voice_note".split(" "))
const ALIGNS: ReadonlySet<unknown> = new Set(["left", "center", "right"])
const VALIGNS: ReadonlySet<unknown> = new Set(["top", "middle", "bottom"])

/** Reads the blocks of one message and throws what the Bot API would refuse. */
class BlockReader {
  readonly #words: Array<string> = []
  readonly #buttons: Array<{ text: string; data: string }> = []
  readonly #links: Array<string> = []
  readonly #fetched: Array<string> = []
  #blocks = 0

  read(blocks: unknown): RichShown {
    this.#all(blocks, 1)
    const text = this.#words.join("\n")
    if (text.length > CHARS_MAX) throw new Error("rich message is too long")
    return { text, buttons: this.#buttons, links: this.#links, fetched: this.#fetched }
  }

  #all(blocks: unknown, depth: number): void {
    if (!Array.isArray(blocks) || blocks.length === 0) throw new Error("blocks must be a non-empty array")
    if (depth > DEPTH_MAX) throw new Error("blocks are nested too deep")
    for (const block of blocks) this.#block(block as JsonObject, depth)
  }

  #count(): void {
    this.#blocks += 1
    if (this.#blocks > BLOCKS_MAX) throw new Error("too many blocks")
  }

  #block(block: JsonObject, depth: number): void {
    this.#count()
    const { type } = block
    if (type === "paragraph" || type === "footer" || type === "pre") return this.#line(block["text"], depth)
    if (type === "divider") return
    if (type === "heading") {
      const { size } = block
      if (typeof size !== "number" || !Number.isInteger(size) || size < 1 || size > 6)
        throw new Error("invalid heading size")
      return this.#line(block["text"], depth)
    }
    if (type === "blockquote") return this.#all(block["blocks"], depth + 1)
    if (type === "list") return this.#list(block["items"], depth)
    if (type === "table") return this.#table(block["cells"], depth)
    if (type === "buttons") return this.#row(block["buttons"])
    if (typeof type === "string" && MEDIA.has(type)) {
      this.#fetched.push(JSON.stringify(block[type]))
      return
    }
    throw new Error(`unsupported block ${String(type)}`)
  }

  #list(items: unknown, depth: number): void {
    if (!Array.isArray(items) || items.length === 0) throw new Error("a list needs items")
    for (const item of items as ReadonlyArray<JsonObject>) {
      this.#count()
      const { value } = item
      if (value !== undefined && !Number.isInteger(value)) throw new Error("invalid value of a list item")
      this.#all(item["blocks"], depth + 1)
    }
  }

  #table(rows: unknown, depth: number): void {
    if (!Array.isArray(rows) || rows.length === 0) throw new Error("a table needs cells")
    for (const row of rows) {
      this.#count()
      if (!Array.isArray(row) || row.length === 0 || row.length > COLUMNS_MAX)
        throw new Error("invalid number of columns")
      for (const cell of row as ReadonlyArray<JsonObject>) {
        if (!ALIGNS.has(cell["align"]) || !VALIGNS.has(cell["valign"])) throw new Error("invalid alignment of a cell")
        if (cell["text"] !== undefined) this.#line(cell["text"], depth)
      }
    }
  }

  #row(buttons: unknown): void {
    if (!Array.isArray(buttons) || buttons.length === 0 || buttons.length > ROW_BUTTONS_MAX)
      throw new Error("invalid buttons")
    for (const button of buttons as ReadonlyArray<JsonObject>) this.#button(button)
  }

  #button({ callback_data, text, url }: JsonObject): void {
    if (typeof callback_data === "string") this.#buttons.push({ text: this.#text(text, 1), data: callback_data })
    else this.#links.push(String(url))
  }

  #line(text: unknown, depth: number): void {
    const words = this.#text(text, depth)
    if (words === "") throw new Error("text must be non-empty")
    this.#words.push(words)
  }

  #text(text: unknown, depth: number): string {
    if (depth > DEPTH_MAX) throw new Error("text is nested too deep")
    if (typeof text === "string") return text
    if (Array.isArray(text)) return text.map((part) => this.#text(part, depth)).join("")
    if (!Predicate.isObject(text)) throw new Error("invalid text")
    const { type } = text
    if (typeof type !== "string") throw new Error("invalid text")
    if (type === "button") {
      this.#button(text["button"] as JsonObject)
      return ""
    }
    if (type === "url") {
      const { url } = text
      if (typeof url !== "string" || !/^(?:https?|tg|ton):\/\/\S+$/u.test(url)) throw new Error("invalid url")
      this.#links.push(url)
    } else if (type === "email_address") this.#links.push(`mailto:${String(text["email_address"])}`)
    else if (type === "phone_number") this.#links.push(`tel:${String(text["phone_number"])}`)
    else if (!TEXTS.has(type)) throw new Error(`unsupported text ${type}`)
    return this.#text(text["text"], depth + 1)
  }
}

/** Blocks, or in words why they are refused. */
export const richFromBlocks = (blocks: unknown): RichShown | string => {
  try {
    return new BlockReader().read(blocks)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
