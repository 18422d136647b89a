/** The process that reads one page, so that a page that is made to be slow, large or harmful costs choird nothing but this process. */
import { pageBody } from "./pageBody.ts"
import { pageMarkdown } from "./pageMarkdown.ts"
import type { PageOrder, PageReport } from "./pageProtocol.ts"
import { refused, reportPage, shortened } from "./reportPage.ts"

/** The Markdown version that a page names itself: `<link rel="alternate" type="text/markdown" href="…">`. */
const MARKDOWN_LINK = /<link\b(?=[^>]{0,500}\btype=["']?text\/markdown\b)[^>]{0,500}?\bhref=["']?([^"'\s>]{1,500})/iu
/** The beginning of a page, where it names its other versions. */
const HEAD_CHARS_MAX = 65_536
/** How HTML begins that nothing calls so. */
const IS_PAGE =
  /^\s{0,200}(?:<!--[^]{0,2000}?-->\s{0,200})?<(?:!doctype\s+html|html|head|body|title|meta|h1|p|div|table)\b/iu

const isPage = ({ form }: PageOrder, text: string): boolean =>
  form === "html" || (form === "unknown" && IS_PAGE.test(text))

await reportPage((order, body, report): PageReport => {
  const text = pageBody(body, order)
  if (order.form === "markdown" && /^\s{0,200}</u.test(text)) return refused("it is a page")
  if (!isPage(order, text)) return shortened({ title: "", text })
  const markdown = MARKDOWN_LINK.exec(text.slice(0, HEAD_CHARS_MAX))?.[1]
  if (markdown !== undefined) report({ _tag: "Offers", markdown })
  const { refresh, ...page } = pageMarkdown(text, order.url)
  const offers = { ...(markdown === undefined ? {} : { markdown }), ...(refresh === undefined ? {} : { refresh }) }
  if (refresh !== undefined) report({ _tag: "Offers", ...offers })
  return shortened(page)
})
