/** The process that reads one page, so that a page that is made to be slow or large costs choird nothing but this process. */
import { text } from "node:stream/consumers"
import { pageMarkdown } from "./pageMarkdown.ts"
import type { PageOrder, PageReport } from "./pageProtocol.ts"

const report = (message: PageReport) => process.stdout.write(`${JSON.stringify(message)}\n`)

const read = ({ html, url }: PageOrder): PageReport => {
  try {
    return { _tag: "Read", page: pageMarkdown(html, url) }
  } catch (error) {
    // A stack that is used up is a page that is nested too deep.
    return { _tag: "Refused", problem: error instanceof RangeError ? "it is nested too deep" : "it cannot be read" }
  }
}

report({ _tag: "Ready" })
report(read(JSON.parse(await text(process.stdin)) as PageOrder))
