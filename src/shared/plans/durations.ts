/** Durations: "in 20 minutes", "2h30m", "через 2 часа", "20分後". */
import type { Language, Unit } from "./Language.ts"
import { gapOf, LETTERS, numberOf, numberValue, windowOf, wordOf } from "./patterns.ts"

/** Days and months are counted on the wall; the rest is elapsed time. */
export interface Duration {
  readonly months: number
  readonly days: number
  readonly elapsed_ms: number
}

export interface TakenDuration {
  readonly language: Language
  readonly duration: Duration
  readonly rest: string
  readonly chars: number
}

const MS: Readonly<Record<Unit, number>> = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 0,
  year: 0
}
const WEEK_DAYS = 7
const YEAR_MONTHS = 12
/** As in "1 week, 2 days, 3 hours and 4 minutes". */
const PARTS_MAX = 4
const WORD_START = new RegExp(`(?<![${LETTERS}])[${LETTERS}]`, "gu")

interface Patterns {
  readonly within: RegExp
  readonly clock: RegExp
  readonly part: RegExp
  readonly between: RegExp
  readonly later: RegExp
}

/** One small pattern for each piece: a pattern of a whole duration takes half a second to compile. */
const patternsOf = (language: Language): Patterns => {
  const { and, isSpaced, later, units, within } = language
  const never = "(?!)"
  const end = isSpaced ? `(?![${LETTERS.replace(String.raw`\w`, "a-z")}])` : ""
  const unit = Object.entries(units).map(([name, source]) => `(?<${name}>${source})`)
  const sticky = (source: string) => new RegExp(source, "iuy")
  return {
    within: sticky(within === "" ? never : `${wordOf(language, within)}${gapOf(language)}`),
    clock: sticky(String.raw`(\d{1,2})h(\d\d)(?![${LETTERS}])`),
    part: sticky(String.raw`(?<number>${numberOf(language)})[ \-]?(?:${unit.join("|")})\.?${end}`),
    between: sticky(String.raw`(?:\s?,)?\s?(?:(?:${and})\s)?`),
    later: sticky(later === "" ? never : `${isSpaced ? " " : ""}${wordOf(language, later)}`)
  }
}

const PATTERNS = new WeakMap<Language, Patterns>()

const patterns = (language: Language): Patterns => {
  const found = PATTERNS.get(language) ?? patternsOf(language)
  PATTERNS.set(language, found)
  return found
}

const execAt = (pattern: RegExp, text: string, index: number): RegExpExecArray | undefined => {
  pattern.lastIndex = index
  return pattern.exec(text) ?? undefined
}

const plus = (one: Duration, language: Language, { groups = {} }: RegExpExecArray): Duration => {
  const number = numberValue(language, groups["number"] ?? "")
  const unit = (Object.keys(MS) as ReadonlyArray<Unit>).find((name) => groups[name] !== undefined) ?? "second"
  if (unit === "month" || unit === "year")
    return { ...one, months: one.months + Math.round(number * (unit === "year" ? YEAR_MONTHS : 1)) }
  if ((unit === "day" || unit === "week") && Number.isInteger(number))
    return { ...one, days: one.days + number * (unit === "week" ? WEEK_DAYS : 1) }
  return { ...one, elapsed_ms: one.elapsed_ms + Math.round(number * MS[unit]) }
}

interface Seen {
  readonly duration: Duration
  readonly end: number
  /** Whether a word before it or after it says that it is a time from now. */
  readonly isMarked: boolean
}

/** The duration that begins at a place of a text. */
const seenAt = (language: Language, text: string, start: number): Seen | undefined => {
  const { between, clock, later, part, within } = patterns(language)
  const before = execAt(within, text, start)
  let end = start + (before?.[0].length ?? 0)
  let duration: Duration = { months: 0, days: 0, elapsed_ms: 0 }
  const [hours, hour, minute] = before === undefined ? [] : (execAt(clock, text, end) ?? [])
  if (hours !== undefined) {
    const elapsed_ms = Number(hour) * MS.hour + Number(minute) * MS.minute
    return { duration: { ...duration, elapsed_ms }, end: end + hours.length, isMarked: true }
  }
  let found = execAt(part, text, end)
  if (found === undefined) return undefined
  for (let parts = 0; found !== undefined && parts < PARTS_MAX; parts += 1) {
    duration = plus(duration, language, found)
    end = found.index + found[0].length
    found = execAt(part, text, end + (execAt(between, text, end)?.[0].length ?? 0))
  }
  const after = execAt(later, text, end)
  return {
    duration,
    end: end + (after?.[0].length ?? 0),
    isMarked: before !== undefined || after !== undefined
  }
}

const longest = (all: ReadonlyArray<TakenDuration>): TakenDuration | undefined =>
  all.reduce<TakenDuration | undefined>(
    (best, one) => (best === undefined || one.chars > best.chars ? one : best),
    undefined
  )

/** A duration at the beginning; a bare one is without a word before or after it, as in "20m". */
export const firstDuration = (
  languages: ReadonlyArray<Language>,
  text: string,
  kind: "marked" | "bare"
): TakenDuration | undefined => {
  const window = windowOf("first", text)
  return longest(
    languages.flatMap((language) => {
      const seen = seenAt(language, window, 0)
      if (seen === undefined || (kind === "marked") !== seen.isMarked) return []
      if (kind === "bare" && !/^\d.*\s$/su.test(`${text.slice(0, seen.end)}${text.charAt(seen.end) || " "}`)) return []
      return [{ language, duration: seen.duration, rest: text.slice(seen.end), chars: seen.end }]
    })
  )
}

/** A duration at the end, with a word before or after it. */
export const lastDuration = (languages: ReadonlyArray<Language>, text: string): TakenDuration | undefined => {
  const bare = text.replace(/(?<![\s.!?])[\s.!?]+$/u, "")
  const window = windowOf("last", bare)
  const starts = (language: Language) =>
    [...window.matchAll(language.isSpaced ? WORD_START : /./gu)].map(({ index }) => index)
  return longest(
    languages.flatMap((language) =>
      starts(language).flatMap((start) => {
        const seen = seenAt(language, window, start)
        if (seen === undefined || !seen.isMarked || seen.end !== window.length) return []
        const chars = window.length - start
        return [{ language, duration: seen.duration, rest: bare.slice(0, bare.length - chars), chars }]
      })
    )
  )
}
