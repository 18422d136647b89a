/** The words for times of one language, as patterns. */
import type { Chrono } from "chrono-node/en"

/** The reader of dates and times of day. */
export type Parser = Pick<Chrono, "parse">

/** Units of durations. */
export type Unit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year"

/** The patterns of one language, without case. What has no words in it is left empty. */
export interface Language {
  readonly code: string
  readonly parser: Parser
  /** A letter of its script; a text without one is not in this language. */
  readonly script: RegExp
  /** Whether words have blanks between them. */
  readonly isSpaced: boolean
  readonly every: string
  /** Words that mean every second one. */
  readonly other: string
  readonly daily: string
  /** Each day, in its second half. */
  readonly evenings: string
  readonly workdays: string
  readonly weekends: string
  /** From Sunday, as they follow a word for "every". */
  readonly weekdays: ReadonlyArray<string>
  /** Weekdays that say themselves that they repeat. */
  readonly repeated: ReadonlyArray<string>
  readonly and: string
  readonly units: Readonly<Record<Unit, string>>
  /** Numbers that are words, as far as durations need them; a language in which a unit alone means one of it has an empty one. */
  readonly numbers: Readonly<Record<string, number>>
  /** Before a duration, and after it. */
  readonly within: string
  readonly later: string
  /** A day of each month, whose number is the group `day`. */
  readonly monthly: ReadonlyArray<string>
  /** After an hour of the clock with twelve: in the half of the day that they name, as far as chrono-node does not know them. */
  readonly evening: string
  readonly morning: string
  /** Words between a time and the text beside it, on the side of the text and on the side of the time. */
  readonly joiners: string
  readonly leads: string
  /** Words that chrono-node does not know, each with words that it knows. `{+2}` is the date of the day after tomorrow. */
  readonly rewrites: ReadonlyArray<readonly [string, string]>
}
