/** Text without a meaning, of a wanted length: results and messages of tests that are about sizes. */

const WORDS =
  "const value of the next request is read from its scope and returned when all other fibers end here".split(" ")

/** A text of about so many tokens, another one for each number. */
export const fillerOf = (tokens: number, seed: number): string =>
  Array.from(
    { length: tokens },
    (_, index) => WORDS[(index * 7 + seed * 13 + index * index * seed) % WORDS.length]
  ).join(" ")
