/** The words of a mail as a mail program shows them: those of its HTML where it has some. Pure; the mail is hostile, so it runs in a process of its own. */
import { showValues } from "#src/shared/web/formValues.ts"
import { htmlDocument } from "#src/shared/web/htmlDocument.ts"
import { htmlMarkdown } from "#src/shared/web/htmlMarkdown.ts"
import { removeUnseen } from "#src/shared/web/seenPage.ts"
import { REPORT_TEXT_CHARS_MAX } from "./mailProtocol.ts"

/** Characters of HTML that are looked at. */
const HTML_CHARS_MAX = 1_000_000
/** Characters of an address: those of a link by which a person confirms something are long. */
const ADDRESS_CHARS_MAX = 2048
/** Words of the plain part that the HTML lacks, from which on the two say different things. */
const OWN_WORDS_MIN = 3
/** A plain part that only says that the mail is in HTML. */
const PLACEHOLDER_CHARS_MAX = 300
const PLACEHOLDER = /\bhtml\b|\bbrowser\b|(?:mail|e-mail)[ -]?(?:program|client|reader)/iu

export interface MailWords {
  readonly text: string
  /** The plain part says something that the HTML does not show. */
  readonly differs: boolean
}

/** The words of the HTML of a mail that are seen. */
export const htmlWords = (html: string): string => {
  const document = htmlDocument(html.slice(0, HTML_CHARS_MAX))
  removeUnseen(document)
  showValues(document)
  return htmlMarkdown(document.body, { address_chars_max: ADDRESS_CHARS_MAX, isPlain: true })
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(/https?:\S+/giu, " ")
    .toLowerCase()
    .match(/[\p{L}\p{N}]{3,}/gu) ?? []

const hasOwnWords = (plain: string, seen: string): boolean => {
  if (plain.length <= PLACEHOLDER_CHARS_MAX && PLACEHOLDER.test(plain)) return false
  const shown = new Set(wordsOf(seen))
  const own = new Set(wordsOf(plain.slice(0, REPORT_TEXT_CHARS_MAX)).filter((word) => !shown.has(word)))
  return own.size >= OWN_WORDS_MIN
}

export const mailWords = (plain: string, html: string): MailWords => {
  if (html.trim() === "") return { text: plain, differs: false }
  const seen = htmlWords(html)
  // A mail of pictures alone often has its words in the plain part only.
  const isPictures = seen.replaceAll(/\[image: [^\]]*\]|\(https?:[^)]*\)|[[\]\s]/gu, "") === ""
  if (isPictures && plain.trim() !== "") return { text: `${plain}\n\n${seen}`.trim(), differs: true }
  return { text: seen, differs: hasOwnWords(plain, seen) }
}
