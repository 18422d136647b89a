/** Sums of what agents claim of their work: whatever they claim, a snapshot and an answer can hold the sum. */

export const tokenSum = (...tokens: ReadonlyArray<number>): number =>
  tokens.reduce((sum, more) => Math.min(Number.MAX_SAFE_INTEGER, sum + more), 0)

export const costSum = (...usd: ReadonlyArray<number>): number =>
  usd.reduce((sum, more) => Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, sum + more)), 0)

/** The milliseconds from one instant to another; 0 where one of them is not a date, or they are in the wrong order. */
export const msBetween = (from: string, to: string): number => Math.max(0, Date.parse(to) - Date.parse(from)) || 0
