/** The words of a time in a text: what repeats, a duration, or a date and a time of day, at its beginning, at its end, or one at each. */
import { firstDuration, lastDuration, type Duration, type TakenDuration } from "./durations.ts"
import type { Language } from "./Language.ts"
import { momentAt, type CalendarDate, type ClockTime, type Moment } from "./moments.ts"
import type { Edge } from "./patterns.ts"
import { firstRepetition, laterRepetitions, type Repetition } from "./repetitions.ts"

/** It takes a clock and a zone to make a time of them. */
export interface FoundWords {
  readonly language: Language
  readonly rest: string
  readonly date?: CalendarDate | undefined
  readonly time?: ClockTime | undefined
  readonly duration?: Duration | undefined
  readonly repetition?: Repetition | undefined
  readonly offset?: number | undefined
  readonly words?: string | undefined
  /** Whether the text names a span of time, of which this is the beginning. */
  readonly isSpan?: boolean
  /** Whether it is hours without a word before them, such as "9h", which some languages write for a time of day. */
  readonly isHoursAlone?: boolean
}

type Languages = ReadonlyArray<Language>

/** Marks after the last word. */
const ENDED = /^[\s.!?)。！]*$/u

/** A repetition with the time of day beside it, or apart from it at the other end of the text. */
const repeatingWords = (languages: Languages, text: string, wall_ms: number): FoundWords | undefined => {
  const timeAt = (edge: Edge, part: string) => {
    const found = momentAt(languages, edge, part, wall_ms)
    return found?.time !== undefined && found.date === undefined ? found : undefined
  }
  const first = firstRepetition(languages, text)
  if (first !== undefined) {
    const { after: rest, language, repetition } = first
    const needsTime = repetition.kind !== "interval" || repetition.unit === "day"
    const time = timeAt("first", rest) ?? (needsTime ? timeAt("last", rest) : undefined)
    return { language, repetition, rest: time?.rest ?? rest, time: time?.time, offset: time?.offset }
  }
  for (const { after, before, language, repetition } of laterRepetitions(languages, text)) {
    const isLast = ENDED.test(after)
    const time = isLast ? (timeAt("last", before) ?? timeAt("first", before)) : timeAt("first", after)
    const found = { language, repetition, time: time?.time, offset: time?.offset }
    if (isLast) return { ...found, rest: time?.rest ?? before }
    if (time?.rest.trim() === "") return { ...found, rest: before }
    // A time at the beginning, then what repeats, then the text.
    const leading = timeAt("first", text)
    if (leading !== undefined && leading.rest.trimStart() === text.slice(before.length).trimStart())
      return { language, repetition, rest: after, time: leading.time, offset: leading.offset }
  }
  return undefined
}

/** Days from now with the time of day beside them or at the other end. */
const fromDuration = (
  languages: Languages,
  { duration, language, rest }: TakenDuration,
  wall_ms: number
): FoundWords => {
  const found: FoundWords = { language, rest, duration }
  if (duration.elapsed_ms > 0) return found
  const time = momentAt(languages, "first", rest, wall_ms) ?? momentAt(languages, "last", rest, wall_ms)
  return time?.time === undefined || time.date !== undefined ? found : { ...found, time: time.time, rest: time.rest }
}

/** A date at one place and a time of day at another, as one. */
const joined = (one: Moment, other: Moment | undefined): FoundWords | undefined => {
  if (other === undefined || (one.date === undefined) === (other.date === undefined)) return undefined
  if ((one.time === undefined) === (other.time === undefined)) return undefined
  const date = one.date === undefined ? other : one
  const time = one.date === undefined ? one : other
  const isSpan = date.isSpan || time.isSpan
  return {
    ...date,
    isSpan,
    time: time.time,
    offset: time.offset,
    rest: other.rest,
    words: `${date.words} ${time.words}`
  }
}

/** A time of day with days from now beside it: "at 9 in two weeks", "in two weeks at 9". */
const withDays = (time: Moment | undefined, days: TakenDuration | undefined): FoundWords | undefined =>
  time?.time === undefined || time.date !== undefined || days === undefined || days.duration.elapsed_ms > 0
    ? undefined
    : { language: days.language, rest: days.rest, duration: days.duration, time: time.time }

const isWhole = (found: Moment | undefined): boolean => found?.date !== undefined && found.time !== undefined

const wordsOfOnce = (languages: Languages, text: string, wall_ms: number): FoundWords | undefined => {
  const marked = firstDuration(languages, text, "marked") ?? lastDuration(languages, text)
  if (marked !== undefined) return fromDuration(languages, marked, wall_ms)
  const bare = firstDuration(languages, text, "bare")
  const first = momentAt(languages, "first", text, wall_ms)
  if (bare !== undefined && !isWhole(first)) {
    const words = text.slice(0, bare.chars)
    return { ...fromDuration(languages, bare, wall_ms), words, isHoursAlone: /^\d+ ?h$/iu.test(words) }
  }
  if (isWhole(first)) return first
  const last = momentAt(languages, "last", text, wall_ms)
  if (first !== undefined) {
    const both =
      joined(first, momentAt(languages, "first", first.rest, wall_ms)) ??
      joined(first, momentAt(languages, "last", first.rest, wall_ms))
    if (both !== undefined && !isWhole(last)) return both
  }
  const days =
    withDays(first, first && firstDuration(languages, first.rest.trimStart(), "marked")) ??
    withDays(last, last && lastDuration(languages, last.rest))
  if (days !== undefined) return days
  if (last !== undefined && !isWhole(last)) {
    const both = joined(last, momentAt(languages, "last", last.rest, wall_ms))
    if (both !== undefined) return both
  }
  return isWhole(last) || first === undefined || (first.time === undefined && last?.time !== undefined) ? last : first
}

const EVENING: ClockTime = { hour: 20, minute: 0, second: 0, by: "word" }

/** The time of day of what repeats in the evening: 8 is 20:00 then. */
const inTheEvening = (found: FoundWords): FoundWords => {
  const { repetition, time = EVENING } = found
  if (repetition?.kind !== "days" || repetition.isEvening !== true) return found
  return { ...found, time: time.hour < 12 ? { ...time, hour: time.hour + 12, by: "digits" } : time }
}

/** Words that continue a time, in any language. */
const CONTINUING = [
  "and|or|until|till|before|after|except|between|from|starting|week",
  "und|oder|bis|vor|nach|außer|zwischen|ab",
  "et|ou|jusqu|avant|après|sauf|entre|y|hasta|antes|después|salvo|desde|fino|prima|dopo|tranne|até|depois|exceto",
  "en|tot|voor|na|behalve|tussen|vanaf|или|до|перед|после|кроме|між|або|після|крім"
].join("|")
const CONTINUED = new RegExp(String.raw`^(?:${CONTINUING})(?![\p{L}\p{N}])`, "iu")

/** Whether words after a time may be a part of it that was not understood. */
export const goesOn = (languages: Languages, { time }: FoundWords, rest: string, wall_ms: number): boolean =>
  CONTINUED.test(rest) ||
  (time?.minute === 0 && /^\d\d(?![\d.,:])/u.test(rest)) ||
  momentAt(languages, "first", rest, wall_ms) !== undefined ||
  firstDuration(languages, rest, "marked") !== undefined ||
  firstRepetition(languages, rest) !== undefined

/** The words of a time in a text, or undefined where it has none. `wall_ms` is what the clock on the wall shows now. */
export const findWords = (languages: Languages, text: string, wall_ms: number): FoundWords | undefined => {
  const repeating = repeatingWords(languages, text, wall_ms)
  return repeating === undefined ? wordsOfOnce(languages, text, wall_ms) : inTheEvening(repeating)
}
