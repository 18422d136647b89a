/** A page of the web as Markdown: the article where there is one, else all of it. Pure; the page is hostile, so it runs in a process of its own. */
import { Readability } from "@mozilla/readability"
import { parseHTML } from "linkedom"
import TurndownService from "turndown"
import { UNSEEN, withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import type { PageText } from "./pageProtocol.ts"
import { type PageNode, removeUnseen } from "./seenPage.ts"

/** Characters of a title. */
const TITLE_CHARS_MAX = 300
/** An article below this length is not the page's content. */
const ARTICLE_CHARS_MIN = 200
/** Characters of an address within the text; longer ones carry data and no meaning. */
const ADDRESS_CHARS_MAX = 500

/** An address that a reader can follow, or `undefined`. */
const addressOf = (href: string | null, base: string): string | undefined => {
  const url = href === null ? null : URL.parse(href, base)
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined
  return url.href.length <= ADDRESS_CHARS_MAX ? url.href : undefined
}

/** The part of the DOM that is used here; the project has no types of browsers. */
interface Element extends PageNode {
  readonly children: Iterable<Element>
  getAttribute(name: string): string | null
  querySelector(selector: string): Element | null
  querySelectorAll(selector: string): Iterable<Element>
}
interface Document extends Element {
  readonly body: Element | null
  readonly documentElement: Element
}

const oneLine = (text: string) => text.replace(/\s+/gu, " ").trim()

const cellsOf = (row: Element): ReadonlyArray<string> =>
  Array.from(row.children, (cell) => oneLine(cell.textContent ?? "").replaceAll("|", String.raw`\|`))

const tableOf = (table: Element): string => {
  const rows = [...table.querySelectorAll("tr")].map(cellsOf).filter((cells) => cells.length > 0)
  const [head, ...body] = rows
  if (head === undefined) return ""
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return `\n\n${[line(head), line(head.map(() => "---")), ...body.map(line)].join("\n")}\n\n`
}

// A table within a table is layout.
const isPlainTable = (node: Element) => node.nodeName === "TABLE" && node.querySelector("table") === null

const converter = (base: string) =>
  new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-", emDelimiter: "*" })
    .remove(["script", "style", "noscript", "template", "iframe", "object", "head"])
    .addRule("links", {
      filter: "a",
      replacement: (content, node) => {
        const address = addressOf(node.getAttribute("href"), base)
        const words = oneLine(content)
        return address === undefined || words === "" ? content : `[${words}](${address})`
      }
    })
    .addRule("images", {
      filter: "img",
      replacement: (_content, node) => {
        const words = oneLine(node.getAttribute("alt") ?? "")
        return words === "" ? "" : `[image: ${words}]`
      }
    })
    .addRule("tables", {
      filter: (node) => isPlainTable(node),
      replacement: (_content, node) => tableOf(node)
    })

/** A parser that does not repair: what has no body gets one. */
const documentOf = (html: string): Document => {
  const whole = /<body[\s>]/iu.test(html) ? html : `<!doctype html><html><body>${html}</body></html>`
  return parseHTML(whole).document
}

/** The same without what its readers do not see. */
const seenDocumentOf = (html: string): Document => {
  const document = documentOf(html)
  removeUnseen(document.documentElement, document.querySelectorAll("style"))
  return document
}

/** The article that Readability finds, as a document of its own. */
const articleOf = (document: Document): Element | undefined => {
  const article = new Readability(document, { keepClasses: true }).parse()
  if ((article?.textContent ?? "").trim().length < ARTICLE_CHARS_MIN) return undefined
  return documentOf(article?.content ?? "").body ?? undefined
}

/** The Markdown of a page at `url`. */
export const pageMarkdown = (html: string, url: string): PageText => {
  const whole = seenDocumentOf(html)
  const title = oneLine(whole.querySelector("title")?.textContent ?? "").slice(0, TITLE_CHARS_MAX)
  // Readability takes its document apart.
  const root = articleOf(seenDocumentOf(html)) ?? whole.body ?? whole.documentElement
  const text = converter(url).turndown(root)
  return { title: title.replaceAll(UNSEEN, "").toWellFormed(), text: withoutUnseen(text).toWellFormed() }
}
