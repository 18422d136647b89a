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
/** HTML of so few words is not the mail where its plain part has so many times as many. */
const POOR_WORDS_MAX = 8
const POOR_TIMES = 4
/** A part that only says where the mail is to be read: as HTML, or in a browser. */
const PLACEHOLDER_CHARS_MAX = 300
const PLACEHOLDER = /\bhtml\b|\bbrowser\b|(?:mail|e-mail)[ -]?(?:program|client|reader)/iu

export interface MailWords {
  readonly text: string
  /** The plain part says something that the HTML does not show. */
  readonly differs: boolean
  /** The HTML shows so little that the plain part is given in front of it. */
  readonly isPlainFirst: boolean
}

/** The words of the HTML of a mail that are seen. */
export const htmlWords = (html: string): string => {
  const document = htmlDocument(html.slice(0, HTML_CHARS_MAX))
  removeUnseen(document)
  showValues(document)
  return htmlMarkdown(document.body, { address_chars_max: ADDRESS_CHARS_MAX, isPlain: true })
}

/** Letters of scripts whose words have no blanks between them, and those of Korean, whose words are short. */
const UNSPACED = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}ー\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}`
const BREAKS_IN_WORDS = new RegExp(`(?<=[${UNSPACED}])\\s+(?=[${UNSPACED}])`, "gu")
const WORDS = new RegExp(`(?<pairs>[${UNSPACED}]{2,})|(?:(?![${UNSPACED}])[\\p{L}\\p{N}]){3,}`, "gu")
/** The weight of a pair of letters: a word of such a script has two or three letters, and another word changes all pairs around it. */
const PAIR = 0.5

/** The words of a text with what each counts as; of a script without blanks its pairs of letters. */
const wordsOf = (text: string): ReadonlyArray<readonly [word: string, counts: number]> => {
  const plain = text
    .replaceAll(/https?:\S+/giu, " ")
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(BREAKS_IN_WORDS, "")
  return [...plain.matchAll(WORDS)].flatMap(([word, pairs]): ReadonlyArray<readonly [word: string, counts: number]> => {
    if (pairs === undefined) return [[word, 1]]
    const letters = Array.from(pairs)
    return letters.slice(1).map((letter, at) => [`${letters[at] ?? ""}${letter}`, PAIR])
  })
}

const sum = (words: Iterable<readonly [word: string, counts: number]>): number => {
  let all = 0
  for (const [, counts] of words) all += counts
  return all
}

const isPlaceholder = (part: string) => part.length <= PLACEHOLDER_CHARS_MAX && PLACEHOLDER.test(part)

/** How the words of both parts compare. */
const compared = (plain: string, seen: string) => {
  const shown = new Map(wordsOf(seen))
  const said = new Map(wordsOf(plain.slice(0, REPORT_TEXT_CHARS_MAX)))
  const own = sum([...said].filter(([word]) => !shown.has(word)))
  const few = sum(shown)
  const times = isPlaceholder(seen) ? 1 : POOR_TIMES
  return { hasOwn: own >= OWN_WORDS_MIN, isPoor: few <= POOR_WORDS_MAX && sum(said) >= times * few }
}

export const mailWords = (plain: string, html: string): MailWords => {
  if (html.trim() === "") return { text: plain, differs: false, isPlainFirst: false }
  const seen = htmlWords(html)
  // A mail of pictures alone often has its words in the plain part only, and some programs write HTML of a line that sends its reader there.
  const isPictures = seen.replaceAll(/\[image: [^\]]*\]|\(https?:[^)]*\)|[[\]\s]/gu, "") === ""
  const { hasOwn, isPoor } = compared(plain, seen)
  if (plain.trim() !== "" && (isPictures || (hasOwn && isPoor)))
    return { text: `${plain}\n\n${seen}`.trim(), differs: false, isPlainFirst: true }
  return { text: seen, differs: hasOwn && !isPlaceholder(plain), isPlainFirst: false }
}
