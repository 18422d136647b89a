/** The process that reads one page, so that a page that is made to be slow, large or harmful costs choird nothing but this process. */
import { buffer } from "node:stream/consumers"
import { BodyRefused, pageBody } from "./pageBody.ts"
import { pageMarkdown } from "./pageMarkdown.ts"
import { PAGE_CHARS_MAX, type PageOrder, type PageReport } from "./pageProtocol.ts"

/** The Markdown version that a page names itself: `<link rel="alternate" type="text/markdown" href="…">`. */
const MARKDOWN_LINK = /<link\b(?=[^>]{0,500}\btype=["']?text\/markdown\b)[^>]{0,500}?\bhref=["']?([^"'\s>]{1,500})/iu
/** The beginning of a page, where it names its other versions. */
const HEAD_CHARS_MAX = 65_536

const report = (message: PageReport) => process.stdout.write(`${JSON.stringify(message)}\n`)

const refused = (problem: string): PageReport => ({ _tag: "Refused", problem })

const shortened = ({ text, title }: { readonly text: string; readonly title: string }): PageReport => ({
  _tag: "Read",
  page: { title: title.slice(0, PAGE_CHARS_MAX), text: text.slice(0, PAGE_CHARS_MAX) }
})

const read = (order: PageOrder, body: Buffer): PageReport => {
  try {
    const text = pageBody(body, order)
    if (order.form === "markdown" && /^\s{0,200}</u.test(text)) return refused("it is a page")
    if (order.form !== "html") return shortened({ title: "", text })
    const markdown = MARKDOWN_LINK.exec(text.slice(0, HEAD_CHARS_MAX))?.[1]
    if (markdown !== undefined) report({ _tag: "Offers", markdown })
    return shortened(pageMarkdown(text, order.url))
  } catch (error) {
    if (error instanceof BodyRefused) return refused(error.message)
    // A stack that is used up is a page that is nested too deep.
    return refused(error instanceof RangeError ? "it is nested too deep" : "it cannot be read")
  }
}

report({ _tag: "Ready" })
const input = await buffer(process.stdin)
const end = input.indexOf("\n")
report(read(JSON.parse(input.toString("utf8", 0, end)) as PageOrder, input.subarray(end + 1)))
