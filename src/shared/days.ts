/** Days in milliseconds. A day is always 24 hours here: retention and ranking do not follow a time zone. */

export const DAY_MS = 86_400_000

/** The moment some days before another, both in milliseconds since 1970, as an ISO instant. */
export const daysBefore = (now_ms: number, days: number): string => new Date(now_ms - days * DAY_MS).toISOString()
