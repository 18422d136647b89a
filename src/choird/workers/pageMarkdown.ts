/** A page of the web as Markdown: the article where there is one, else all of it. Pure; the page is hostile, so it runs in a process of its own. */
import { Readability } from "@mozilla/readability"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"
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

/** The page without what is around its content. */
const contentOf = (document: HtmlDocument): HtmlElement => {
  const { body } = document.cloneNode(true)
  for (const part of Array.from(body.querySelectorAll(`${AROUND}, ${SCRIPTS}`))) part.remove()
  return body
}

/** The article that Readability finds, as a document of its own. */
const articleOf = (document: HtmlDocument): HtmlElement | undefined => {
  const article = new Readability(document.cloneNode(true), { keepClasses: true }).parse()
  const words = (article?.textContent ?? "").trim()
  return words.length < ARTICLE_CHARS_MIN ? undefined : htmlDocument(article?.content ?? "").body
}

/** An article with the comments that were left out of it. */
const withComments = (article: HtmlElement, document: HtmlDocument): HtmlElement => {
  const told = wordsIn(article)
  const left = Array.from(document.body.querySelectorAll(COMMENTS)).filter((part) => {
    const words = wordsIn(part)
    return words !== "" && !told.includes(words.slice(0, SAME_CHARS))
  })
  for (const part of left)
    if (!left.some((other) => other !== part && isWithin(part, other))) article.appendChild(part.cloneNode(true))
  return article
}

const isWithin = (part: HtmlElement, other: HtmlElement): boolean => {
  for (let above = part.parentNode; above !== null; above = above.parentNode) if (above === other) return true
  return false
}

/** The part of a page that a person reads: its article, unless that leaves out much of the content. */
const readable = (document: HtmlDocument): HtmlElement => {
  const content = contentOf(document)
  const all = wordsIn(content).length
  const article = articleOf(document)
  if (article !== undefined && wordsIn(article).length >= ARTICLE_SHARE_MIN * all)
    return withComments(article, document)
  return all === 0 ? document.body : content
}

/** The title of the page, and not that of a picture in it. */
const titleOf = (document: HtmlDocument): string => {
  const title = Array.from(document.querySelectorAll("title")).find((each) => each.closest("svg") === null)
  return (title === undefined ? "" : wordsIn(title)).slice(0, TITLE_CHARS_MAX).replaceAll(UNSEEN, "").toWellFormed()
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
  const text = htmlMarkdown(readable(document), { base, address_chars_max: ADDRESS_CHARS_MAX, hasEmphasis: true })
  return { title: titleOf(document), text, refresh }
}
