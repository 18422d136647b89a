/** The word that a person probably meant. Pure. */

/** More letters than this apart, and a guess would mislead. */
const LETTERS_APART_MAX = 2

/** How many letters have to be put in, taken out, replaced or swapped with their neighbour. */
const distance = (one: string, other: string): number => {
  let before: ReadonlyArray<number> = []
  let row: ReadonlyArray<number> = Array.from({ length: other.length + 1 }, (_, n) => n)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const swapped = isSwap ? (before[j - 2] ?? 0) + 1 : Infinity
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[other.length] ?? 0
}

/** The one of `words` that is nearest to what was written; `undefined` when none is near. */
export const nearestWord = (written: string, words: Iterable<string>): string | undefined => {
  const near = [...words]
    .filter((word) => Math.abs(word.length - written.length) <= LETTERS_APART_MAX)
    .map((word) => ({ word, apart: distance(written.toLowerCase(), word.toLowerCase()) }))
    // A short word of which every letter differs is not a misspelling.
    .filter(({ apart, word }) => apart <= LETTERS_APART_MAX && apart * 2 <= word.length)
    .toSorted((one, other) => one.apart - other.apart)
  return near[0]?.word
}
