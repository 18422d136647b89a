/** Counts as people and models read them. */

/** A count as people write it: 1,210. */
export const counted = (count: number): string => count.toLocaleString("en-US")

/** A count with its noun, which takes an s where there are several. */
export const plural = (count: number, noun: string): string => `${counted(count)} ${noun}${count === 1 ? "" : "s"}`
