/** The other spellings by which a word may be looked for. A document has all of them and so has a query, so that either may be written in any. Pure. */
import { withPlainDigits } from "#src/shared/text/typedText.ts"

/** Latin letters that do not come apart into a letter and a mark, as keyboards without them write them. */
const PLAIN_LETTERS: Readonly<Record<string, string>> = {
  ß: "ss",
  ł: "l",
  ø: "o",
  đ: "d",
  ð: "d",
  þ: "th",
  æ: "ae",
  œ: "oe",
  ı: "i",
  ħ: "h",
  ŧ: "t"
}
const PLAIN = new RegExp(`[${Object.keys(PLAIN_LETTERS).join("")}]`, "gu")

/** Letters that German and the Nordic languages write as two where they have no key for them. */
const TWO_LETTERS: Readonly<Record<string, string>> = { ä: "ae", ö: "oe", ü: "ue", å: "aa", ø: "oe" }
const TWO = new RegExp(`[${Object.keys(TWO_LETTERS).join("")}]`, "gu")

/** Letters of Persian, Urdu and Pashto keyboards that look like Arabic ones and are others. */
const ARABIC_LETTERS: Readonly<Record<string, string>> = {
  ک: "ك",
  ی: "ي",
  ے: "ي",
  ې: "ي",
  ۍ: "ي",
  ہ: "ه",
  ھ: "ه",
  ۀ: "ه",
  ۂ: "ه",
  ۃ: "ة"
}
const ARABIC = new RegExp(`[${Object.keys(ARABIC_LETTERS).join("")}]`, "gu")

/** Without accents. Marks of other scripts carry meaning that no other spelling has. */
const bare = (word: string): string => word.normalize("NFD").replaceAll(/\p{M}/gu, "").normalize("NFC")

const replaced = (word: string, letters: RegExp, by: Readonly<Record<string, string>>): string =>
  word.replaceAll(letters, (letter) => by[letter] ?? letter)

/** "And", "the", "in", "to", "from", "that" and "as", which Hebrew writes in front of a word without a blank. */
const HEBREW_PREFIX = /^[והבלמשכ](?=\p{Script=Hebrew}{3})/u
/** Such letters before one word: `שהרופא` is "that the doctor". */
const PREFIXES_MAX = 2

const withoutPrefixes = (word: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let rest = word; found.length < PREFIXES_MAX && HEBREW_PREFIX.test(rest);) {
    rest = rest.slice(1)
    found.push(rest)
  }
  return found
}

/** A word in lower case, and its other spellings behind it. */
export const spellingsOf = (word: string): ReadonlyArray<string> => {
  const plain = bare(replaced(word, PLAIN, PLAIN_LETTERS))
  const two = bare(replaced(replaced(word, TWO, TWO_LETTERS), PLAIN, PLAIN_LETTERS))
  const shared = replaced(withPlainDigits(word), ARABIC, ARABIC_LETTERS)
  return [...new Set([word, bare(word), plain, two, shared, ...withoutPrefixes(bare(word))])]
}
