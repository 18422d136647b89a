/** A text of a stranger in which nothing is hidden: characters that nobody sees, and marks that cover others, are shown by their numbers. Pure. */
import { STACKED } from "./unseenCharacters.ts"

/** The scripts in which words need a joiner or a non-joiner between letters. */
const JOINING = [
  "Arabic Syriac Mongolian Nko Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Khmer Myanmar Tibetan Balinese Javanese"
]
  .flatMap((names) => names.split(" "))
  .map((name) => `\\p{scx=${name}}`)
  .join("")

/** The three flags that end with letters which nobody sees: England, Scotland and Wales. */
const FLAGS = ["gbeng", "gbsct", "gbwls"]
  .map(
    (place) =>
      `\u{1F3F4}${Array.from(place, (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("")}\u{E007F}`
  )
  .join("|")

/** Characters that nobody sees and that change those beside them: in emoji, in scripts that join, and in old forms of characters. */
const NEEDED = [
  FLAGS,
  `(?<=[${JOINING}])[\\u200C\\u200D]`,
  `(?<=[\\p{Extended_Pictographic}\\uFE0F\\p{Emoji_Modifier}])\\u200D(?=\\p{Extended_Pictographic})`,
  `(?<=[\\p{Emoji}\\p{S}])[\\uFE0E\\uFE0F]`,
  `(?<=\\p{Script=Han})[\\uFE00-\\uFE0F\\u{E0100}-\\u{E01EF}]`,
  `(?<=\\p{Script=Mongolian})[\\u180B-\\u180F]`
].join("|")

/** Signs around numbers of some scripts that Unicode counts as formats, and that everybody sees. */
const SEEN = "\\u0600-\\u0605\\u06DD\\u070F\\u0890\\u0891\\u08E2\\u{110BD}\\u{110CD}"

const UNSEEN = new RegExp(
  `(?<needed>${NEEDED})|(?<unseen>(?![\\n\\t${SEEN}])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]|${STACKED.source})\\k<unseen>*`,
  "gu"
)

/** A character by its number, and how often it stands there. */
const numberOf = (run: string): string => {
  const [first = ""] = run
  const times = run.length / first.length
  const code = (first.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")
  return `⟨U+${code}${times > 1 ? ` ×${times}` : ""}⟩`
}

/** The text with `⟨U+202E⟩` in place of a character that reorders what is read, has no width, or controls a terminal. */
export const seenText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(UNSEEN, (found, needed: string | undefined) => (needed === undefined ? numberOf(found) : found))
