/** The common part of the processes that read pages: one order and one body on standard input, and reports on standard output. */
import { buffer } from "node:stream/consumers"
import { BodyRefused } from "./pageBody.ts"
import { PAGE_CHARS_MAX, type PageOrder, type PageReport, type PageText } from "./pageProtocol.ts"

const write = (message: PageReport) => process.stdout.write(`${JSON.stringify(message)}\n`)

export const refused = (problem: string): PageReport => ({ _tag: "Refused", problem })

/** A page within what a report may have. */
export const shortened = ({ text, title }: PageText): PageReport => ({
  _tag: "Read",
  page: { title: title.slice(0, PAGE_CHARS_MAX), text: text.slice(0, PAGE_CHARS_MAX) }
})

/** Reads the one page of this process. @param read takes what it reports before its end. */
export const reportPage = async (
  read: (order: PageOrder, body: Buffer, report: (message: PageReport) => void) => PageReport | Promise<PageReport>
): Promise<void> => {
  write({ _tag: "Ready" })
  const input = await buffer(process.stdin)
  const end = input.indexOf("\n")
  const order = JSON.parse(input.toString("utf8", 0, end)) as PageOrder
  try {
    write(await read(order, input.subarray(end + 1), write))
  } catch (error) {
    // A stack that is used up is a page that is nested too deep.
    const problem = error instanceof RangeError ? "it is nested too deep" : "it cannot be read"
    write(refused(error instanceof BodyRefused ? error.message : problem))
  }
}
