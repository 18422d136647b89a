/** Durations: "in 20 minutes", "2h30m", "через 2 часа", "20分後". */
import type { Language, Unit } from "./Language.ts"
import { gapOf, numberOf, numberValue, windowOf, wordOf } from "./patterns.ts"

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

const unitsOf = ({ units }: Language): string =>
  Object.entries(units)
    .map(([unit, source]) => `(?:${source})`.replace("(?:", `(?<${unit}>`))
    .join("|")

const withoutNames = (source: string) => source.replaceAll(/\(\?<(?![=!])\w+>/gu, "(?:")

interface Patterns {
  readonly marked: RegExp
  readonly bare: RegExp
  readonly last: RegExp
  readonly part: RegExp
}

const patternsOf = (language: Language): Patterns => {
  const { and, isSpaced, later, within } = language
  const end = isSpaced ? String.raw`(?!\p{L})` : ""
  const part = String.raw`(?:${numberOf(language)})[ \-]?(?:${withoutNames(unitsOf(language))})\.?${end}`
  const between = String.raw`(?:\s?,)?\s?(?:(?:${and})\s)?`
  const several = `${part}(?:${between}${part}){0,3}`
  const parts = String.raw`(?:\d{1,2}h\d\d(?![\p{L}\p{N}])|${several})`
  const before = within === "" ? "(?!)" : `${wordOf(language, within)}${gapOf(language)}`
  const after = later === "" ? "(?!)" : `${isSpaced ? " " : ""}${wordOf(language, later)}`
  const marked = `(?:${before}(?<a>${parts})|(?<b>${parts})${after})`
  const start = isSpaced ? String.raw`(?<![\p{L}\p{N}])` : ""
  return {
    marked: new RegExp(`^${marked}`, "iu"),
    bare: new RegExp(String.raw`^(?<a>(?=\d)${several})(?<b>)(?=\s|$)`, "iu"),
    last: new RegExp(`${start}${marked}$`, "iu"),
    part: new RegExp(String.raw`(?<number>${numberOf(language)})[ \-]?(?:${unitsOf(language)})\.?${end}`, "giu")
  }
}

const PATTERNS = new WeakMap<Language, Patterns>()

const patterns = (language: Language): Patterns => {
  const found = PATTERNS.get(language) ?? patternsOf(language)
  PATTERNS.set(language, found)
  return found
}

const durationOf = (language: Language, text: string): Duration => {
  const clock = /^(\d{1,2})h(\d\d)$/iu.exec(text)
  if (clock !== null)
    return { months: 0, days: 0, elapsed_ms: Number(clock[1]) * MS.hour + Number(clock[2]) * MS.minute }
  let [months, days, elapsed_ms] = [0, 0, 0]
  for (const { groups = {} } of text.matchAll(patterns(language).part)) {
    const number = numberValue(language, groups["number"] ?? "")
    const unit = (Object.keys(MS) as ReadonlyArray<Unit>).find((name) => groups[name] !== undefined)
    if (unit === "month" || unit === "year") months += Math.round(number * (unit === "year" ? YEAR_MONTHS : 1))
    else if ((unit === "day" || unit === "week") && Number.isInteger(number))
      days += number * (unit === "week" ? WEEK_DAYS : 1)
    else if (unit !== undefined) elapsed_ms += Math.round(number * MS[unit])
  }
  return { months, days, elapsed_ms }
}

const taken = (language: Language, found: RegExpExecArray | null, rest: (found: RegExpExecArray) => string) =>
  found === null
    ? []
    : [
        {
          language,
          duration: durationOf(language, found.groups?.["a"] ?? found.groups?.["b"] ?? ""),
          rest: rest(found),
          chars: found[0].length
        }
      ]

const longest = (all: ReadonlyArray<TakenDuration>): TakenDuration | undefined =>
  all.reduce<TakenDuration | undefined>(
    (best, one) => (best === undefined || one.chars > best.chars ? one : best),
    undefined
  )

/** A duration at the beginning; `bare` is one without a word before or after it, as in "20m". */
export const firstDuration = (
  languages: ReadonlyArray<Language>,
  text: string,
  kind: "marked" | "bare"
): TakenDuration | undefined =>
  longest(
    languages.flatMap((language) =>
      taken(language, patterns(language)[kind].exec(windowOf("first", text)), ([whole]) => text.slice(whole.length))
    )
  )

export const lastDuration = (languages: ReadonlyArray<Language>, text: string): TakenDuration | undefined => {
  const bare = text.replace(/(?<![\s.!?])[\s.!?]+$/u, "")
  const tail = windowOf("last", bare)
  return longest(
    languages.flatMap((language) =>
      taken(language, patterns(language).last.exec(tail), ([whole]) => bare.slice(0, bare.length - whole.length))
    )
  )
}
