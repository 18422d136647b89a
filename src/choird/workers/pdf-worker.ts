/** The process that reads one PDF. Apart from that of pages, which would load the reader of PDFs for nothing. */
import { unpacked } from "./pageBody.ts"
import { pdfText } from "./pdfText.ts"
import { reportPage, shortened } from "./reportPage.ts"

await reportPage(async ({ encoding }, body) => shortened(await pdfText(unpacked(body, encoding))))
