/** Words as they are compared: case, forms and marks that mean the same folded. Pure. */

/** A letter of a script that writes its words without blanks. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]/u
/** A letter of a script that adds its particles to words. */
const PARTICLES = /\p{Script=Hangul}/u

/** Case as all languages agree on it: both Turkish i are one, ß is ss, and a final sigma is a sigma. */
const foldedCase = (text: string): string =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll("i\u{307}", "i")
    .replaceAll("\u{131}", "i")
    .replaceAll("\u{df}", "ss")
    .replaceAll("\u{3c2}", "\u{3c3}")
    .normalize("NFC")

/** The words of a text, apart by one blank each, with a blank at both ends. */
export const foldedWords = (text: string): string => {
  const words = foldedCase(text).match(/[\p{L}\p{N}\p{M}]+/gu)
  return ` ${(words ?? []).join(" ")} `
}

const NONE = foldedWords("")

/** Whether folded words hold those of another text one after each other, and no part of a word as its script writes words. */
export const holdsWords = (words: string, match: string): boolean => {
  const folded = foldedWords(match)
  if (folded === NONE) return false
  const wanted = folded.trim()
  const isEnd = (inside: string, outside: string) => outside === " " || UNSPACED.test(inside) || UNSPACED.test(outside)
  const [first = ""] = wanted
  const last = wanted.at(-1) ?? ""
  for (let at = words.indexOf(wanted); at !== -1; at = words.indexOf(wanted, at + 1)) {
    const after = words[at + wanted.length] ?? " "
    const isEnded = isEnd(last, after) || (PARTICLES.test(last) && PARTICLES.test(after))
    if (isEnded && isEnd(first, words[at - 1] ?? " ")) return true
  }
  return false
}
