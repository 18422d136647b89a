/** Text of keyboards of other scripts in the signs that commands and numbers have: full-width letters and the digits of any script. Pure. */

const isDigit = (code: number): boolean => /^\p{Nd}$/u.test(String.fromCodePoint(code))

/** Digits of a script stand one after another from 0 to 9, and so do those of scripts beside each other. */
const valueOf = (digit: string): string => {
  const code = digit.codePointAt(0) ?? 0
  let first = code
  while (isDigit(first - 1)) first--
  return String((code - first) % 10)
}

/** The text with digits 0 to 9 in place of those of other scripts. */
export const withPlainDigits = (text: string): string =>
  text.replaceAll(/\p{Nd}/gu, (digit) => {
    const plain = digit.normalize("NFKC")
    return /^\d$/u.test(plain) ? plain : valueOf(digit)
  })

/** A word with letters, digits and slashes in place of their full-width forms. */
export const plainWord = (word: string): string => withPlainDigits(word.normalize("NFKC"))

/** The signs that end a sentence in any script, which a keyboard may add to a word. */
export const SENTENCE_END =
  /[.!?,:;\u{2026}\u{3002}\u{3001}\u{ff01}\u{ff0c}\u{ff0e}\u{ff1a}\u{ff1b}\u{ff1f}\u{061f}\u{060c}\u{061b}\u{06d4}\u{0964}]+$/u
