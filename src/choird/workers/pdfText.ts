/** The words of a PDF, page by page. The PDF is hostile, so it is read in a process of its own, without fonts, pictures and scripts. */
import { getDocumentProxy } from "unpdf"
import { withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import { BodyRefused } from "./pageBody.ts"
import { PAGE_CHARS_MAX, type PageText } from "./pageProtocol.ts"

/** Pages of a PDF that are read; the text says where more are left out. */
const PDF_PAGES_MAX = 300

type Proxy = Awaited<ReturnType<typeof getDocumentProxy>>

const open = async (bytes: Uint8Array): Promise<Proxy> => {
  try {
    return await getDocumentProxy(new Uint8Array(bytes), { disableFontFace: true, verbosity: 0 })
  } catch (error) {
    const isLocked = error instanceof Error && error.name === "PasswordException"
    throw new BodyRefused(isLocked ? "it is a PDF that needs a password" : "it is a PDF that is damaged")
  }
}

/** The words of one page, in lines as it writes them. */
const wordsOf = async (document: Proxy, number: number): Promise<string> => {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  page.cleanup()
  return items
    .map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : ""))
    .join("")
    .replaceAll(/[ \t]+$/gmu, "")
    .replaceAll(/\n{3,}/gu, "\n\n")
    .trim()
}

const titleOf = async (document: Proxy): Promise<string> => {
  const { info } = await document.getMetadata()
  const title: unknown = "Title" in info ? info.Title : ""
  return typeof title === "string" ? title.replaceAll(/\s+/gu, " ").trim().slice(0, 300) : ""
}

/** The text of a PDF. @throws BodyRefused where it cannot be opened, or has no words. */
export const pdfText = async (bytes: Uint8Array): Promise<PageText> => {
  const document = await open(bytes)
  const pages: Array<string> = []
  let chars = 0
  const count = Math.min(document.numPages, PDF_PAGES_MAX)
  for (let number = 1; number <= count && chars < PAGE_CHARS_MAX; number++) {
    const words = await wordsOf(document, number)
    chars += words.length
    if (words !== "") pages.push(document.numPages === 1 ? words : `## Page ${number}\n\n${words}`)
  }
  if (pages.length === 0) throw new BodyRefused("it is a PDF whose pages are pictures, without text")
  const left = document.numPages - count
  const text = [...pages, ...(left === 0 ? [] : [`[${left} more pages are left out]`])].join("\n\n")
  return { title: withoutUnseen(await titleOf(document)).toWellFormed(), text: withoutUnseen(text).toWellFormed() }
}
