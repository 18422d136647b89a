/** Markdown of HTML, of pages and of mails alike. Pure; the HTML is hostile, so it runs in a process of its own. */
import TurndownService from "turndown"
import { withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import { type HtmlElement, wordsIn } from "./htmlDocument.ts"
import { isDataTable, layoutRow, tableMarkdown } from "./htmlTables.ts"

export interface MarkdownOptions {
  /** The address that others are relative to; without it such links are text. */
  readonly base?: string | undefined
  /** Characters of an address within the text; a longer one is left out. */
  readonly address_chars_max: number
  /** Whether emphasis and code have no marks, as in a text that a person copies out of a mail. */
  readonly isPlain: boolean
}

const oneLine = (text: string) => text.replace(/\s+/gu, " ").trim()

/** An address that a reader can follow or write to. */
const addressOf = (href: string | null, { address_chars_max, base }: MarkdownOptions): string | undefined => {
  const url = href === null ? null : URL.parse(href.trim(), base)
  if (url === null || !/^(?:https?|mailto|tel):$/u.test(url.protocol)) return undefined
  const { href: address } = url
  return address.length <= address_chars_max ? address.replaceAll("(", "%28").replaceAll(")", "%29") : undefined
}

/** An address that stands in the text itself, so that it need not be there twice. */
const isItself = (words: string, address: string): boolean => {
  const plain = (text: string) =>
    text
      .replace(/^(?:mailto|tel):|^https?:\/\//iu, "")
      .replace(/\/$/u, "")
      .toLowerCase()
  return plain(words) === plain(address)
}

/** Whether an address is a place in the page itself. */
const isWithinPage = (address: string | undefined, { base }: MarkdownOptions): boolean =>
  address !== undefined && base !== undefined && address.includes("#") && address.split("#")[0] === base.split("#")[0]

/** Words of links that only say where a part of the page begins. */
const ANCHOR = /^[¶#§^🔗]?$/u

const linkOf = (content: string, href: string | null, options: MarkdownOptions): string => {
  const words = oneLine(withoutUnseen(content)).replaceAll(/(^| )#{1,6} /gu, "$1")
  const address = addressOf(href, options)
  if (href?.startsWith("#") === true || isWithinPage(address, options)) return ANCHOR.test(words) ? "" : content
  if (address === undefined || words === "") return content
  return isItself(words, address) ? content : `[${words}](${address})`
}

/** The rules of tables: the Markdown of each cell is kept until its row or its table is written. */
const addTables = (service: TurndownService): void => {
  const cells = new WeakMap<object, string>()
  const kinds = new WeakMap<object, boolean>()
  const markdownOf = (cell: object) => cells.get(cell) ?? ""
  const isData = (node: HtmlElement): boolean => {
    const table = node.closest("table")
    if (table === null) return false
    const known = kinds.get(table) ?? isDataTable(table)
    kinds.set(table, known)
    return known
  }
  const element = (node: unknown) => node as HtmlElement
  service
    .addRule("cells", {
      filter: ["td", "th"],
      replacement: (content, node) => {
        cells.set(node, content)
        return element(node).closest("table") === null ? `\n\n${content}\n\n` : ""
      }
    })
    .addRule("rows", {
      filter: "tr",
      replacement: (_content, node) => (isData(element(node)) ? "" : layoutRow(element(node), markdownOf))
    })
    .addRule("tables", {
      filter: "table",
      replacement: (content, node) =>
        isData(element(node)) ? `${content}${tableMarkdown(element(node), markdownOf)}` : `\n\n${content}\n\n`
    })
}

/** A number above the line is a power unless it ends an ordinal or leads to a note. */
const raised = (content: string): string =>
  /^[-+−]?(?:\d[\d.,]*|[a-z])$/u.test(content.trim()) ? `^${content.trim()}` : content

/** Whether everything in an element stands as it is written. */
const isInCode = (node: unknown): boolean => (node as HtmlElement).closest("pre") !== null

/** The language of a block of code, which sites name in a class of it or of an element in it. */
const languageOf = (pre: HtmlElement): string => {
  const classes = [pre, ...pre.querySelectorAll("code")].map((each) => each.getAttribute("class") ?? "").join(" ")
  return /\b(?:language|lang|highlight-source)-([\w+#-]{1,30})/u.exec(classes)?.[1] ?? ""
}

/** Blocks of code, in fences that are longer than any in them. */
const addCode = (service: TurndownService): void => {
  service.addRule("code", {
    filter: "pre",
    replacement: (_content, node) => {
      const pre = node as unknown as HtmlElement
      const text = (pre.textContent ?? "").replace(/^\n/u, "").trimEnd()
      const longest = Math.max(2, ...(text.match(/^`{3,}/gmu) ?? []).map((fence) => fence.length))
      const fence = "`".repeat(longest + 1)
      return text.trim() === "" ? "" : `\n\n${fence}${languageOf(pre)}\n${text}\n${fence}\n\n`
    }
  })
}

const FORMULA_SIGNS: Readonly<Record<string, string>> = { msup: "^", msub: "_", mfrac: "/" }

/** Signs that mean something by where they stand, which a line of text does not show. */
const addSigns = (service: TurndownService, { isPlain }: MarkdownOptions): void => {
  service
    .addRule("emphasis", {
      filter: ["strong", "b", "em", "i"],
      replacement: (content, node) => {
        const words = content.trim()
        // Marks reach over no end of a line.
        if (isPlain || words === "" || words.includes("\n") || isInCode(node)) return content
        const mark = /^(?:STRONG|B)$/u.test(node.nodeName) ? "**" : "*"
        return `${mark}${words}${mark}`
      }
    })
    .addRule("struck", {
      filter: ["del", "s"],
      replacement: (content) => (content.trim() === "" ? "" : `~~${content.trim()}~~`)
    })
    .addRule("raised", { filter: "sup", replacement: raised })
    .addRule("formulas", {
      filter: (node) => /^(?:msup|msub|mfrac)$/iu.test(node.nodeName),
      replacement: (_content, node) => {
        const { children, nodeName } = node as unknown as HtmlElement
        return Array.from(children, wordsIn).join(FORMULA_SIGNS[nodeName.toLowerCase()] ?? "")
      }
    })
}

const converter = (options: MarkdownOptions) => {
  const service = new TurndownService({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
    emDelimiter: "*",
    br: ""
  })
    .remove(["script", "style", "noscript", "template", "iframe", "object", "head", "title"])
    .addRule("links", {
      filter: "a",
      replacement: (content, node) => linkOf(content, node.getAttribute("href"), options)
    })
    .addRule("images", {
      filter: "img",
      replacement: (_content, node) => {
        const words = oneLine(node.getAttribute("alt") ?? "")
        return words === "" ? "" : `[image: ${words}]`
      }
    })
  // Backslashes in front of signs would be copied with them, into names and numbers.
  service.escape = (text) => text
  addSigns(service, options)
  if (!options.isPlain) addCode(service)
  addTables(service)
  return service
}

/** The Markdown of what is in an element. */
export const htmlMarkdown = (root: HtmlElement, options: MarkdownOptions): string => {
  // Some sites write the lines of code with elements between them.
  for (const end of Array.from(root.querySelectorAll("pre br"))) end.replaceWith("\n")
  return withoutUnseen(converter(options).turndown(root))
    .replaceAll(/ *[\u{a0}\u{2007}\u{202f}][ \u{a0}\u{2007}\u{202f}]*/gu, " ")
    .replaceAll(/[ \t]+$/gmu, "")
    .replaceAll(/\n{3,}/gu, "\n\n")
    .trim()
    .toWellFormed()
}
