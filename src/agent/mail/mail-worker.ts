/** The process that reads one mail, so that a mail that is made to be slow, large or harmful costs its agent nothing but this process. */
import { buffer } from "node:stream/consumers"
import { MailRefused } from "./boundedMime.ts"
import type { MailOrder, MailReport } from "./mailProtocol.ts"
import { readMime } from "./readMime.ts"

const report = async (order: MailOrder, raw: Uint8Array): Promise<MailReport> => {
  try {
    return await readMime(raw, order)
  } catch (error) {
    if (error instanceof MailRefused) return { _tag: "Refused", why: error.why, max: error.max }
    // A stack that is used up is a mail that is nested too deep.
    return { _tag: "Refused", why: error instanceof RangeError ? "nested too deep" : "broken" }
  }
}

const input = await buffer(process.stdin)
const end = input.indexOf("\n")
const order = JSON.parse(input.toString("utf8", 0, end)) as MailOrder
process.stdout.write(`${JSON.stringify(await report(order, input.subarray(end + 1)))}\n`)
