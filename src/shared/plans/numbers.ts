/** Numbers in the words of a language. */

/** The numbers from 1, and others. */
export const counted = (words: string, others: Readonly<Record<string, number>>): Readonly<Record<string, number>> => ({
  ...Object.fromEntries(words.split(" ").map((word, index) => [word, index + 1])),
  ...others
})

/** The number of a day of each month. */
export const DAY = String.raw`(?<day>\d{1,2})`
