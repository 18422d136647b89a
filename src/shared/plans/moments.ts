/** Dates and times of day, as chrono-node finds them at the beginning or at the end of a text. It reads no clock and asks for no time zone. */
import type { Language } from "./Language.ts"
import { LETTERS, WINDOW_CHARS, windowOf, wordOf, type Edge } from "./patterns.ts"
import { DAY_MS } from "#src/shared/days.ts"

export interface ClockTime {
  readonly hour: number
  readonly minute: number
  readonly second: number
  /** How the time is known: as digits, by an hour that is morning or evening, or by a word such as "tonight". */
  readonly by: "digits" | "hour" | "word"
}

export interface CalendarDate {
  readonly year: number
  readonly month: number
  readonly day: number
  /** The step to the next such date, for one in the past. */
  readonly next: "never" | "week" | "year"
}

export interface Moment {
  readonly language: Language
  readonly date: CalendarDate | undefined
  readonly time: ClockTime | undefined
  /** Minutes before UTC, where the text names a zone. */
  readonly offset: number | undefined
  /** Whether the text names a span of time, of which this is the beginning. */
  readonly isSpan: boolean
  /** The words of the time, and those beside it. */
  readonly words: string
  readonly rest: string
}

type Result = ReturnType<Language["parser"]["parse"]>[number]
type Start = Result["start"]

const pad = (value: number) => String(value).padStart(2, "0")

const isoOf = (wall_ms: number) => new Date(wall_ms).toISOString().slice(0, 10)

const slashed = (wall_ms: number) => isoOf(wall_ms).split("-").toReversed().join("/")

/** The date of `{+2}`, which is `{/2}` where a language wants the day first, or of the day with that number, from 1 for Monday, in the next week (`{next1}`). */
const replaced = (template: string, wall_ms: number): string =>
  template
    .replace(/\{\+(\d)\}/u, (_, days: string) => isoOf(wall_ms + Number(days) * DAY_MS))
    .replace(/\{\/(\d)\}/u, (_, days: string) => slashed(wall_ms + Number(days) * DAY_MS))
    .replace(/\{next(\d)\}/u, (_, day: string) => {
      const sinceMonday = (new Date(wall_ms).getUTCDay() + 6) % 7
      return isoOf(wall_ms + (6 - sinceMonday + Number(day)) * DAY_MS)
    })

const HALVES = String.raw`(\d{1,2})(?:[:.h](\d\d))?(?: ?(?:h|uhr|uur|heures?|horas?|ore))?`

/** "8 in the evening" as 20:00, which chrono-node knows of few languages. */
const withHalves = (language: Language, text: string): string => {
  const { evening, leads, morning } = language
  const half = (hour: string, minute: string | undefined, add: number) =>
    Number(hour) > 12 ? `${hour}:${minute ?? "00"}` : `${pad((Number(hour) % 12) + add)}:${minute ?? "00"}`
  if (evening === "") return text
  return [[evening, 12] as const, [morning, 0] as const].reduce(
    (found, [words, add]) =>
      found
        .replace(new RegExp(`${wordOf(language, HALVES)} (?:${words})(?![${LETTERS}])`, "iu"), (_, hour, minute) =>
          half(hour, minute, add)
        )
        .replace(
          new RegExp(`${wordOf(language, words)} ((?:${leads}) )?${wordOf(language, HALVES)}`, "iu"),
          (_, lead: string | undefined, hour, minute) => `${lead ?? ""}${half(hour, minute, add)}`
        ),
    text
  )
}

const rewritten = (language: Language, text: string, wall_ms: number): string =>
  withHalves(
    language,
    language.rewrites.reduce(
      (found, [pattern, template]) =>
        found.replace(new RegExp(wordOf(language, pattern), "iu"), replaced(template, wall_ms)),
      text
    )
  )

/** Noon of a day in the zone of this process, from which chrono-node counts days: no clock changes at noon. */
const noonOf = (wall_ms: number): Date => {
  const date = new Date(wall_ms)
  return new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), 12)
}

const partsOf = (start: Start) => {
  const part = (name: Parameters<typeof start.get>[0]) => start.get(name) ?? 0
  return [part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second")] as const
}

/** Words that make a weekday one of the past. */
const PAST = new RegExp(
  `(?<![${LETTERS}])(?:last|past|previous|letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?|dernier|passé|pasado|scorso|scorsa|passad[ao]|afgelopen|прошл[а-я]+|минул[а-яі]+)(?![${LETTERS}])|上个?個?(?:周|星期|週)|先週`,
  "iu"
)

const dateOf = (start: Start, words: string): CalendarDate | undefined => {
  const isCertain = (name: "day" | "month" | "year" | "weekday") => start.isCertain(name)
  const isRelative = start.tags().has("result/relativeDate")
  if (!isCertain("day") && !isCertain("weekday") && !isRelative) return undefined
  const isWeekday = !isCertain("day") && isCertain("weekday")
  const next = isRelative || isCertain("year") || PAST.test(words) ? "never" : isWeekday ? "week" : "year"
  const [year, month, day] = partsOf(start)
  return { year, month: month + 1, day, next }
}

const BARE_HOUR = /(?<![\d:.])(\d{1,2})(?![\d:.h時时点點]|\s?(?:am|pm|a\.m|p\.m|uhr|uur|heures?|h\b|час|год))/giu

const timeOf = (start: Start, words: string): ClockTime | undefined => {
  const [, , , hour, minute, second] = partsOf(start)
  const isCertain = start.isCertain("hour")
  const isWord = [...start.tags()].some((tag) =>
    /casualReference\/(?:noon|midnight|morning|afternoon|evening|night|tonight)/u.test(tag)
  )
  if (!isCertain && !isWord && hour === 12 && minute === 0) return undefined
  if (!isCertain) return { hour, minute, second: 0, by: hour === 12 || hour === 0 ? "digits" : "word" }
  // The last number is the hour: dates come before it, or have a month's name.
  const isBare =
    minute === 0 &&
    hour < 12 &&
    hour > 0 &&
    [...words.matchAll(BARE_HOUR)].some(([, digits]) => Number(digits) === hour)
  const isHalfKnown = start.isCertain("meridiem") || /[:.h]\d\d(?!\d)/iu.test(words)
  return { hour, minute, second, by: isBare && !isHalfKnown ? "hour" : "digits" }
}

/** A zone that a text names by capitals or as an offset; other letters are words, such as "est" in French. */
const zoneOf = ({ start, text }: Result): { readonly offset?: number; readonly letters: number } => {
  if (!start.isCertain("timezoneOffset")) return { letters: 0 }
  const word = /\s*,?\s*\(?([A-Za-z]{2,4})\)?$/u.exec(text)
  if (word !== null && !/^[A-Z]+$/u.test(word[1] ?? "")) return { letters: word[0].length }
  return { offset: start.get("timezoneOffset") ?? 0, letters: 0 }
}

/** The words beside a time, or undefined where the time is not at the edge of the text. */
const restOf = (language: Language, edge: Edge, text: string, from: number, until: number): string | undefined => {
  const { isSpaced, leads } = language
  const [before, after] = [text.slice(0, from), text.slice(until)]
  if (edge === "first") return new RegExp(String.raw`^\s*(?:(?:${leads})\s+)*$`, "iu").test(before) ? after : undefined
  if (!/^[\s.!?)。！]*$/u.test(after)) return undefined
  return !isSpaced || /(?:^|[\s,(])$/u.test(before)
    ? before.replace(new RegExp(isSpaced ? String.raw`(?:(?<=^|\s)(?:${leads})\s+)+$` : `(?:${leads})$`, "iu"), "")
    : undefined
}

/** A short name of a weekday alone, which is a word of its own in some language: "do the dishes", "sat nav", "mi casa", "mon ami". */
const isShortName = (words: string, start: Start): boolean =>
  /^\p{L}{1,3}\.?$/u.test(words) && ![...start.tags()].some((tag) => tag.startsWith("casualReference/"))

const momentOf = (language: Language, edge: Edge, text: string, result: Result): Moment | undefined => {
  const { letters, ...zone } = zoneOf(result)
  const words = result.text.slice(0, result.text.length - letters).trimEnd()
  const rest = restOf(language, edge, text, result.index, result.index + words.length)
  if (rest === undefined || /[后後内內]$/u.test(words)) return undefined
  if (result.start.tags().has("result/relativeDateAndTime")) return undefined
  const [date, time] = [dateOf(result.start, words), timeOf(result.start, words)]
  if (date === undefined && time === undefined) return undefined
  if (time === undefined && language.isSpaced && isShortName(words, result.start)) return undefined
  // A month or a year without a day is none.
  if (date === undefined && (result.start.isCertain("month") || result.start.isCertain("year"))) return undefined
  return { language, date, time, offset: zone.offset, isSpan: result.end !== null, words, rest }
}

/** The rest of the whole text, from that of its window; undefined where the window's rest was rewritten. */
const wholeRest = (edge: Edge, text: string, window: string, rest: string): string | undefined => {
  if (edge === "first") return window.endsWith(rest) ? text.slice(window.length - rest.length) : undefined
  return window.startsWith(rest) ? text.slice(0, text.length - window.length + rest.length) : undefined
}

const momentsOf = (language: Language, edge: Edge, text: string, wall_ms: number): ReadonlyArray<Moment> => {
  const window = windowOf(edge, text)
  const read = rewritten(language, window, wall_ms)
  return language.parser.parse(read, noonOf(wall_ms)).flatMap((result) => {
    const moment = momentOf(language, edge, read, result)
    const rest = moment && wholeRest(edge, text, window, moment.rest)
    return moment === undefined || rest === undefined ? [] : [{ ...moment, rest }]
  })
}

/** The moment at an edge of a text: the one with a time of day, and of these the one with most words. */
export const momentAt = (
  languages: ReadonlyArray<Language>,
  edge: Edge,
  text: string,
  wall_ms: number
): Moment | undefined => {
  const weight = ({ rest, time }: Moment) => (time === undefined ? 0 : WINDOW_CHARS * 2) - rest.length
  return languages
    .flatMap((language) => momentsOf(language, edge, text, wall_ms))
    .reduce<Moment | undefined>(
      (best, one) => (best === undefined || weight(one) > weight(best) ? one : best),
      undefined
    )
}
