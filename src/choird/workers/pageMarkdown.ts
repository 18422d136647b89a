/** A page of the web as Markdown: the article where there is one, else all of it. Pure; the page is hostile, so it runs in a process of its own. */
import { Readability } from "@mozilla/readability"
import { UNSEEN, withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import { showValues } from "#src/shared/web/formValues.ts"
import { type HtmlDocument, htmlDocument, type HtmlElement, wordsIn } from "#src/shared/web/htmlDocument.ts"
import { htmlMarkdown } from "#src/shared/web/htmlMarkdown.ts"
import { removeUnseen } from "#src/shared/web/seenPage.ts"
import type { PageText } from "./pageProtocol.ts"

/** Characters of a title. */
const TITLE_CHARS_MAX = 300
/** An article below this length is not the page's content. */
const ARTICLE_CHARS_MIN = 200
/** The part of a page's words that an article has to have; of one with less the rest is content too, such as answers and prices. */
const ARTICLE_SHARE_MIN = 0.6
/** Characters of an address within the text; longer ones carry data and no meaning. */
const ADDRESS_CHARS_MAX = 500

/** The parts around the content of a page. */
const AROUND =
  "nav, aside, body > header, body > footer, [role=navigation], [role=banner], [role=contentinfo], [role=search]"
/** Comments of readers below an article, which may hold the answer that somebody looks for. */
const COMMENTS =
  "#comments, #answers, #responses, #disqus_thread, .comments, .comment-list, .comments-area, [itemprop=comment], [aria-label=Comments]"
/** Words by which two parts of a page are the same. */
const SAME_CHARS = 100
const SCRIPTS = "script, style, noscript, template"

const isWithin = (part: HtmlElement, other: HtmlElement): boolean => {
  for (let above = part.parentNode; above !== null; above = above.parentNode) if (above === other) return true
  return false
}

/** Takes away everything around the content of a page. */
const keepContent = (document: HtmlDocument): HtmlElement => {
  const { body } = document
  for (const part of Array.from(body.querySelectorAll(SCRIPTS))) part.remove()
  const around = Array.from(body.querySelectorAll(AROUND))
  // The only heading of a page is kept, wherever it is.
  const heading = body.querySelector("h1")
  const outside = around.filter((part) => heading === null || !isWithin(heading, part))
  for (const part of outside) part.remove()
  // A page may be nothing but links.
  if (wordsIn(body) === "") for (const part of outside) body.appendChild(part)
  return body
}

interface Article {
  readonly root: HtmlElement
  /** Its author and date. */
  readonly by: ReadonlyArray<string>
}

/** The article that Readability finds, as a document of its own. */
const articleOf = (document: HtmlDocument): Article | undefined => {
  const options = { keepClasses: true, serializer: (root: unknown) => root as HtmlElement }
  const found = new Readability<HtmlElement>(document.cloneNode(true), options).parse()
  const root = found?.content
  if (root === undefined || root === null || wordsIn(root).length < ARTICLE_CHARS_MIN) return undefined
  const by = [found?.byline, found?.publishedTime].map((each) => (each ?? "").replace(/\s+/gu, " ").trim())
  return { root, by: by.filter((each) => each !== "") }
}

/** Comments of a page that are not in its article. */
const commentsOutside = (article: HtmlElement, document: HtmlDocument): ReadonlyArray<HtmlElement> => {
  const found = Array.from(document.body.querySelectorAll(COMMENTS))
  const told = found.length === 0 ? "" : wordsIn(article)
  const left = found.filter((part) => {
    const words = wordsIn(part)
    return words !== "" && !told.includes(words.slice(0, SAME_CHARS))
  })
  return left.filter((part) => !left.some((other) => other !== part && isWithin(part, other)))
}

const BLOCKS = "h1, h2, h3, h4, h5, h6, p, li, dt, dd, pre, td, th, figcaption"
/** Characters of a block by which it is known. */
const KEY_CHARS = 80

const keysIn = (root: HtmlElement): ReadonlyArray<string> =>
  Array.from(root.querySelectorAll(BLOCKS), (block) => wordsIn(block).slice(0, KEY_CHARS)).filter((key) => key !== "")

/** Whether something is missing between the beginning and the end of an article: a head, a table, a block of code. */
const hasGaps = (article: HtmlElement, content: HtmlElement): boolean => {
  const told = new Set(keysIn(article))
  const all = keysIn(content).map((key) => told.has(key))
  const middle = all.slice(all.indexOf(true), all.lastIndexOf(true))
  return middle.includes(false)
}

interface Readable {
  /** The heading of the page, where the root lacks it. */
  readonly heading?: HtmlElement | undefined
  /** Its author and date, where the root lacks them. */
  readonly by: ReadonlyArray<string>
  readonly root: HtmlElement
}

/** An article with its heading in front, which Readability takes out or makes one of many. */
const withHead = ({ by, root }: Article, content: HtmlElement): Readable => {
  const told = wordsIn(root)
  const heading = content.querySelector("h1") ?? content.querySelector("h2") ?? undefined
  const same = Array.from(root.querySelectorAll("h1, h2")).find(
    (each) => heading !== undefined && wordsIn(each) === wordsIn(heading)
  )
  same?.remove()
  return { heading, by: by.filter((each) => !told.includes(each)).map((each) => each.slice(0, TITLE_CHARS_MAX)), root }
}

/** The part of a page that a person reads: its article, unless that leaves out much of the content, or parts between others. */
const readable = (document: HtmlDocument): Readable => {
  const article = articleOf(document)
  const comments = article === undefined ? [] : commentsOutside(article.root, document)
  const content = keepContent(document)
  const enough = ARTICLE_SHARE_MIN * wordsIn(content).length
  if (article === undefined || wordsIn(article.root).length < enough || hasGaps(article.root, content))
    return { root: content, by: [] }
  for (const part of comments) article.root.appendChild(part)
  return withHead(article, content)
}

/** The title of the page, and not that of a picture in it. */
const titleOf = (document: HtmlDocument): string => {
  const title = Array.from(document.querySelectorAll("title")).find((each) => each.closest("svg") === null)
  return (title === undefined ? "" : wordsIn(title)).slice(0, TITLE_CHARS_MAX).replaceAll(UNSEEN, "").toWellFormed()
}

/** An element in one of its own, as its Markdown is that of what is in an element. */
const wrapped = (element: HtmlElement, document: HtmlDocument): HtmlElement => {
  const around = document.createElement("div")
  around.appendChild(element.cloneNode(true))
  return around
}

/** Seconds until a page leads to another one, from which on it is one of its own that only renews itself. */
const REFRESH_SECONDS_MAX = 5
const REFRESH = /^\s*(\d{1,4})(?:\.\d*)?\s*[;,\s]\s*(?:url\s*=\s*)?["']?([^"']{1,2048})/iu

/** The address that a page leads to by itself. */
const refreshOf = (document: HtmlDocument, base: string): string | undefined => {
  const meta = Array.from(document.querySelectorAll("meta[http-equiv]")).find(
    (each) => each.getAttribute("http-equiv")?.trim().toLowerCase() === "refresh"
  )
  const [, seconds, target = ""] = REFRESH.exec(meta?.getAttribute("content") ?? "") ?? []
  if (seconds === undefined || Number(seconds) > REFRESH_SECONDS_MAX) return undefined
  return URL.parse(target.trim(), base)?.href
}

export interface ReadablePage extends PageText {
  readonly refresh?: string | undefined
}

/** The Markdown of a page at `url`. */
export const pageMarkdown = (html: string, url: string): ReadablePage => {
  const document = htmlDocument(html)
  const base = URL.parse(document.querySelector("base[href]")?.getAttribute("href") ?? "", url)?.href ?? url
  const refresh = refreshOf(document, base)
  removeUnseen(document)
  showValues(document)
  const options = { base, address_chars_max: ADDRESS_CHARS_MAX, isPlain: false }
  const { by, heading, root } = readable(document)
  const head = heading === undefined ? "" : htmlMarkdown(wrapped(heading, document), options)
  const parts = [head, ...by, htmlMarkdown(root, options)].filter((part) => part !== "")
  const text = withoutUnseen(parts.join("\n\n")).toWellFormed()
  return { title: titleOf(document), text, refresh }
}
